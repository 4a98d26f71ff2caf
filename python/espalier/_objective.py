"""What `espalier.tune` is given to run, as the command of a study."""
import importlib.util
import os
import pathlib
import shlex
import sys
import sysconfig
import warnings

from espalier import _call, _functions, _sources
from espalier.errors import UsageError

_MOST_BYTES = 120_000  # the kernel takes 128 KiB for one variable of the environment
_LARGE_BYTES = 10_000_000
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
        words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in objective]
        return _of_a_script(words, python) or words
    if isinstance(objective, (str, os.PathLike)):
        path = pathlib.Path(objective)
        if path.is_file():
            return [python, _literal(str(path.absolute()))] if path.suffix == ".py" else [str(path.absolute())]
        if path.suffix == ".py" and len(str(objective).split()) == 1:
            raise UsageError(f"objective {str(objective)!r}: there is no such script in {os.getcwd()}")
        try:
            words = shlex.split(str(objective))
        except ValueError:  # the tuner says what is wrong
            words = []
        return _of_a_script(words, python) or str(objective)  # split by the tuner, as a shell quotes words
    raise UsageError(f"objective {objective!r}: must be a function of the trial, the path of a script, or a command as "
                     "one text or a list of words")


def _of_a_script(words, python):
    """The command of a Python script with its arguments; None if the first word is no such file."""
    if not words or not words[0].endswith(".py") or not os.path.isfile(words[0]):
        return None
    return [python, _literal(os.path.abspath(words[0])), *words[1:]]


def _literal(path):
    """A word of a command, without what braces in it would mean."""
    return path.replace("{", "{{").replace("}", "}}")


def in_file(pickled, python, folder):
    path = folder / FILE
    part = path.with_suffix(".part")
    part.write_bytes(pickled)
    os.replace(part, path)  # at once: a replica may be reading the former one
    return [python, "-m", "espalier._call", _literal(str(path))]


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
                         "functions, is not installed: pip install cloudpickle, or move the "
                         "function to a module") from error
    try:
        sent = _sources.dumps(objective)
    except Exception as error:
        what = _functions.unsendable(objective, cloudpickle.CloudPickler)
        told = f": it refers to {what}: make it within the function" if what else \
            f" ({error}): it refers to something that cannot be pickled; make that within the function"
        raise UsageError(f"objective {name_of(objective)!r} cannot be sent to another process{told}") from error
    if len(sent) > _LARGE_BYTES:
        warnings.warn(f"the objective is {_functions.size(objective, len(sent), cloudpickle.dumps)}, which each replica "
                      "reads: load it within the function", stacklevel=3)
    return sent


def is_another_version(objective, folder):
    """Whether the function that an earlier run left in its folder has other code; False where that cannot be told."""
    try:
        return not _functions.same_code(_call.load(str(folder / FILE)), objective)
    except Exception:  # there is none, or it was written by another Python
        return False


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
