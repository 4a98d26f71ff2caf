"""Says what it is that cannot be pickled, where something cannot."""
import io

from espalier.errors import UsageError

_SHOWN = 80  # characters of a value


def dump(value, pickler, things, remedy):
    """pickler.dump(value), whose error says which of `things`, by what they are called, is to blame."""
    try:
        pickler.dump(value)
    except Exception as error:
        raise (_explain(things, type(pickler), remedy) or error) from error


def _explain(things, pickler, remedy):
    """The error for the first of `things`, by what they are called, that a pickler of that kind refuses; None: it
    takes each of them."""
    for what, value in things.items():
        if refusal(value, pickler) is not None:
            path, found = culprit(value, pickler)
            shown = " ".join(repr(found).split())
            shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN - 3] + "..."
            error = refusal(found, pickler)
            return UsageError(f"{what} cannot be pickled, for checkpoints and replicas that join: {path or 'it'} is "
                              f"{shown}, a {type(found).__name__} ({type(error).__name__}: {error}): {remedy}")
    return None


def refusal(value, pickler):
    try:
        pickler(io.BytesIO()).dump(value)
    except Exception as error:  # whatever a value's own __reduce__ raises
        return error
    return None


def culprit(value, pickler, path=""):
    """Where in nested dicts, lists and tuples the first value is that is refused, and that value."""
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, (list, tuple)):
        parts = list(enumerate(value))
    else:
        parts = []
    for key, part in parts:
        if refusal(part, pickler) is not None:
            return culprit(part, pickler, f"{path}[{key!r}]")
    return path, value
