"""Which functions of a Python module that its users call lack types."""
import ast

_CALLED = ("__init__", "__enter__", "__exit__", "__iter__", "__len__", "__getitem__", "__setitem__")


def untyped(text):
    """(line, name) of each."""
    yield from _untyped_in(ast.parse(text), "")


def _untyped_in(node, owner):
    for one in node.body:
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
            yield from _untyped_in(one, f"{one.name}.")
        if not isinstance(one, ast.FunctionDef) or (one.name.startswith("_") and one.name not in _CALLED):
            continue
        given = one.args.posonlyargs + one.args.args + one.args.kwonlyargs + [one.args.vararg, one.args.kwarg]
        untold = [argument.arg for argument in given
                  if argument is not None and argument.annotation is None and argument.arg not in ("self", "cls")]
        if untold or one.returns is None:
            yield one.lineno, owner + one.name
