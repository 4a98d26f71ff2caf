"""What a function that is sent to other processes refers to, and whether two of them have the same code."""
import functools
import types

from espalier import _pickles

_MB = 1_000_000
_NAMED_SHARE = 0.1  # of the whole, from which a part is named


def unsendable(function, pickler):
    """What it refers to that a pickler of that kind refuses, such as "lock, a _thread.lock"; None: nothing that has a
    name."""
    found = _refused(function, pickler, set())
    if found is None:
        return None
    path, value = found
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{path}, a {name} ({_pickles.refusal(value, pickler)})"


def size(function, total, dumps):
    """The size in words, such as "115 MB with what it refers to (data: 114 MB)"."""
    parts = {name: len(dumps(value)) for name, value in references(function).items()}
    large = sorted((name for name in parts if parts[name] > _NAMED_SHARE * total), key=lambda name: -parts[name])
    told = ", ".join(f"{name}: {parts[name] / _MB:.0f} MB" for name in large)
    return f"{total / _MB:.0f} MB with what it refers to" + (f" ({told})" if told else "")


def references(function):
    """The values that it takes along, by name: those around it, of its module, and of its arguments' defaults."""
    if isinstance(function, types.MethodType):
        return {**references(function.__func__), "self": function.__self__}
    if isinstance(function, functools.partial):
        return {"its function": function.func, "its arguments": function.args, **function.keywords}
    if not isinstance(function, types.FunctionType):
        return dict(getattr(function, "__dict__", {}))
    code = function.__code__
    found = {name: function.__globals__[name] for name in _names(code) if name in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it has no value yet
            pass
    defaults = function.__defaults__ or ()
    positional = code.co_varnames[:code.co_argcount]
    return {**found, **dict(zip(positional[len(positional) - len(defaults):], defaults)),
            **(function.__kwdefaults__ or {})}


def same_code(one, other):
    """Whether two callables run the same code, in what they call as well. Data may differ, and what cannot be compared
    counts as the same."""
    return _same(one, other, set())


def _same(one, other, seen):
    if one is other or (id(one), id(other)) in seen:
        return True
    seen.add((id(one), id(other)))
    if isinstance(one, types.FunctionType) and isinstance(other, types.FunctionType):
        theirs = references(other)
        return _same_text(one.__code__, other.__code__) and all(
            _same(value, theirs[name], seen) for name, value in references(one).items() if name in theirs)
    if isinstance(one, type) and isinstance(other, type):
        mine, theirs = ({name: value for name, value in vars(each).items() if isinstance(value, types.FunctionType)}
                        for each in (one, other))
        return mine.keys() == theirs.keys() and all(_same(value, theirs[name], seen) for name, value in mine.items())
    if isinstance(one, functools.partial) and isinstance(other, functools.partial):
        return _same(one.func, other.func, seen)
    if isinstance(one, types.MethodType) and isinstance(other, types.MethodType):
        return _same(one.__func__, other.__func__, seen) and _same(type(one.__self__), type(other.__self__), seen)
    return not callable(one) or not callable(other) or _same(type(one), type(other), seen)


def _same_text(one, other):
    """Whether two code objects do the same, in whatever file and line they stand."""
    if (one.co_code, one.co_names, one.co_varnames, one.co_freevars) != \
            (other.co_code, other.co_names, other.co_varnames, other.co_freevars):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    for mine, theirs in zip(one.co_consts, other.co_consts):
        both_are_code = isinstance(mine, types.CodeType) and isinstance(theirs, types.CodeType)
        if not (_same_text(mine, theirs) if both_are_code else repr(mine) == repr(theirs) or mine == theirs):
            return False
    return True


def _names(code):
    """Of the globals and attributes that it uses, also in functions within it."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(_names(constant)))
    return names


def _refused(function, pickler, seen):
    """The name by which it refers to what is refused, and that value."""
    seen.add(id(function))
    for name, value in references(function).items():
        if id(value) in seen or _pickles.refusal(value, pickler) is None:
            continue
        if isinstance(value, types.FunctionType):
            within = _refused(value, pickler, seen)
            if within is not None:
                return f"{name}, which refers to {within[0]}", within[1]
        path, found = _pickles.culprit(value, pickler)
        return name + path, found
    return None
