"""The checkpoints of a job as `adaptdl.checkpoint` saves them: a folder for each restart, with a file for each state."""
import pathlib

from espalier import _runtime
from espalier.checkpoint import states
from espalier.env import checkpoint_path

from adaptdl import _variables

FOLDER = "checkpoint-"


def load(state):
    """Loads what was saved last. Returns whether there was something. Where a model trains, its states come in the first
    epoch instead."""
    folder = checkpoint_path()
    if folder is None or models_train():
        return False
    found = finished(pathlib.Path(folder))
    if not found or not (found[-1] / name(state)).is_file():
        return False
    with open(found[-1] / name(state), "rb") as source:
        state.load(source)
    return True


def models_train():
    """Whether Espalier's own checkpoints hold the states."""
    return _variables.agent() or _runtime.is_open() and bool(_runtime.runtime().models)


def name(state):
    return next(key for key, one in states().items() if one is state)


def finished(folder):
    """The finished ones, the newest last."""
    if not folder.is_dir():
        return []
    found = [p for p in folder.iterdir() if p.name.startswith(FOLDER) and p.name[len(FOLDER):].isdigit()]
    return sorted(found, key=lambda p: int(p.name[len(FOLDER):]))
