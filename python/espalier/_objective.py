"""What `espalier.tune` is given to run, as the command of a study."""
import importlib.util
import os
import pathlib
import sys
import sysconfig

from espalier import _call
from espalier.errors import UsageError

_MOST_BYTES = 120_000  # the kernel takes 128 KiB for one variable of the environment
FILE = "objective.pkl"


def name_of(objective):
    """After which a study is named that has no name."""
    if callable(objective):
        name = getattr(objective, "__name__", type(objective).__name__)
    else:
        words = objective if isinstance(objective, (list, tuple)) else [objective]
        name = pathlib.Path(str(words[0])).stem if words else ""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-.") else "_" for c in name).lstrip("-.")
    return plain.replace("_lambda_", "objective") or "study"


def command_of(objective, python):
    """The words of a script or command; None: the objective is a function, which must be sent."""
    if callable(objective):
        where = _importable(objective)
        return [python, "-m", "espalier._call", where] if where else None
    if isinstance(objective, (list, tuple)) and objective:
        return [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in objective]
    if isinstance(objective, (str, os.PathLike)):
        path = pathlib.Path(objective)
        if path.is_file():
            return [python, str(path.absolute())] if path.suffix == ".py" else [str(path.absolute())]
        if path.suffix == ".py" and len(str(objective).split()) == 1:
            raise UsageError(f"objective {str(objective)!r}: there is no such script in {os.getcwd()}")
        return str(objective)  # split by the tuner, as a shell quotes words
    raise UsageError(f"objective {objective!r}: must be a function of the trial, the path of a script, or a command as "
                     "one text or a list of words")


def in_file(pickled, python, folder):
    path = folder / FILE
    path.write_bytes(pickled)
    return [python, "-m", "espalier._call", str(path)]


def in_environment(pickled, python, study):
    """For machines that do not see this one's files."""
    text = _call.encoded(pickled)
    if len(text) > _MOST_BYTES:
        raise UsageError(f"the objective is {len(pickled)} bytes with what it refers to, too many to send "
                         f"({len(text)} of at most {_MOST_BYTES} once compressed): let it load its data itself, or put "
                         "it into a module that the pool's machines can import")
    study["env"] = {**study.get("env", {}), _call.VARIABLE: text}
    return [python, "-m", "espalier._call", "env"]


def pickled(objective):
    try:
        import cloudpickle
    except ImportError as error:
        raise UsageError(f"objective {name_of(objective)!r} cannot be imported by name from another process (it is of "
                         "the main script or a notebook, or within a function), and cloudpickle, which sends such "
                         "functions, is not installed: pip install cloudpickle (or 'espalier[notebook]'), or move the "
                         "function to a module") from error
    try:
        return cloudpickle.dumps(objective)
    except Exception as error:
        raise UsageError(f"objective {name_of(objective)!r} cannot be sent to another process ({error}): it refers to "
                         "something that cannot be pickled; make that within the function") from error


def _importable(objective):
    """MODULE:FUNCTION where another process gets this very function by it."""
    module, name = getattr(objective, "__module__", None), getattr(objective, "__qualname__", "")
    if not module or module == "__main__" or not name.isidentifier():
        return None
    found = getattr(sys.modules.get(module), name, None)
    if found is not objective:
        return None
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    return f"{module}:{name}" if spec is not None and spec.origin else None


def search_path():
    """PYTHONPATH by which trials of this machine import what this process does, but for what an interpreter brings."""
    places = sysconfig.get_paths()
    installed = tuple(places[key] for key in ("stdlib", "platstdlib", "purelib", "platlib"))
    own = [path for path in map(os.path.abspath, sys.path)
           if not path.startswith(installed) and not path.endswith((".zip", "site-packages", "dist-packages"))]
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.pathsep.join(dict.fromkeys([*own, *given]))
