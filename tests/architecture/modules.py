"""What the rules need to know of Python's imports: which module each file of the tree is, and which others it imports.

Every import counts, wherever it stands: one within a function, one for types alone under TYPE_CHECKING, and
importlib.import_module with the name as a literal. A circle that only a late import breaks is one all the same: none of
its files can be understood, moved or tested without the others.

What an import names is what is imported: `from a.b import c` is a.b.c if that is a module, else a.b. The packages
above it, whose __init__ Python runs first, are not: each hands on what is below it, and would be in a circle with it."""

import ast
import posixpath

LITERAL_IMPORTS = ("import_module", "__import__")


def home(name, names):
    """The folder that has to be on sys.path for a file to be imported: the first one above it that is no package."""
    folder = posixpath.dirname(name)
    while f"{folder}/__init__.py" in names:
        folder = posixpath.dirname(folder)
    return folder


def imports(texts):
    """{file: the files that it imports}, of {path of a Python file: its text}. A name that several folders of the tree
    have (many programs have a train.py) is looked for beside the file first; else it may be any of them."""
    homes = sorted({home(name, texts) for name in texts})
    return {name: {found for module in _named(ast.parse(text), name, home(name, texts))
                   for found in _files_of(module, home(name, texts), homes, texts)} - {name}
            for name, text in texts.items()}


def _named(tree, name, at):
    """The modules that a file imports, each as a list of names of which the first that is one counts."""
    package = posixpath.dirname(posixpath.relpath(name, at or ".")).split("/")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ([one.name] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[:len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            yield from ([f"{source}.{one.name}", source] for one in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            if called in LITERAL_IMPORTS and isinstance(node.args[0].value, str):
                yield [node.args[0].value]


def _files_of(candidates, own, homes, names):
    for module in candidates:
        path = module.replace(".", "/")
        for folders in ([own], homes):
            found = [file for folder in folders for ending in (".py", "/__init__.py")
                     if (file := posixpath.join(folder, path + ending)) in names]
            if found:
                return found
    return []


def circles(edges):
    """Groups of more than one that lead to each other in the end, of {one: those that it leads to}."""
    def reached(start):
        found, waiting = set(), [start]
        while waiting:
            for target in edges.get(waiting.pop(), ()):
                if target not in found:
                    found.add(target)
                    waiting.append(target)
        return found

    reach = {one: reached(one) for one in edges}
    return sorted({tuple(sorted(other for other in reach[one] if one in reach.get(other, ())))
                   for one in edges if one in reach[one]})
