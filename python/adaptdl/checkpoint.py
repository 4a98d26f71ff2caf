"""States of a program's own, under AdaptDL's names.

Where a model trains, Espalier saves all states with it at each epoch's end, gives them to replicas that join, and
loads them in the first epoch: no call is needed. In a program without a model these functions save into
ADAPTDL_CHECKPOINT_PATH and load from there, a folder for each restart.
"""
import logging
import os
import pathlib
import shutil

from espalier import _runtime
from espalier.checkpoint import State, states

from adaptdl import _job, env

__all__ = ["State", "load_state", "save_all_states", "save_state"]

_FOLDER = "checkpoint-"
_UNFINISHED = "_checkpoint"


def save_all_states():
    """Saves every state: merges and syncs them on all replicas, and writes them on rank 0, so that a half-written
    checkpoint is never found. Returns the folder on rank 0 if there is one. Where a model trains, Espalier's own
    checkpoints hold them, and this does nothing."""
    if _models_train():
        logging.getLogger("adaptdl").info("save_all_states: Espalier saves the trial's checkpoints itself")
        return None
    if _runtime.is_open() and isinstance(_runtime.runtime(), _job.Job):
        _runtime.runtime().merge_sums()
    folder = env.checkpoint_path()
    for state in states().values():
        save_state(state, folder)
    if env.replica_rank() != 0 or folder is None:
        return None
    folder = pathlib.Path(folder)
    done = folder / f"{_FOLDER}{env.num_restarts()}"
    if done.exists():
        shutil.rmtree(done)
    (folder / _UNFINISHED).mkdir(exist_ok=True)
    os.rename(folder / _UNFINISHED, done)
    for other in _checkpoints(folder):
        if other != done:
            shutil.rmtree(other)
    return str(folder)


def save_state(state, checkpoint_dir, sync=True):
    """Syncs one state, unless told not to, and writes it on rank 0, into what becomes the next checkpoint."""
    if sync:
        state.sync()
    if env.replica_rank() != 0 or checkpoint_dir is None:
        return
    unfinished = pathlib.Path(checkpoint_dir) / _UNFINISHED
    unfinished.mkdir(parents=True, exist_ok=True)
    with open(unfinished / _name(state), "wb") as out:
        state.save(out)


def load_state(state):
    """Loads what `save_all_states` saved last. Returns whether there was something. Where a model trains, its
    states come in the first epoch instead."""
    folder = env.checkpoint_path()
    if folder is None or _models_train():
        return False
    found = _checkpoints(pathlib.Path(folder))
    if not found or not (found[-1] / _name(state)).is_file():
        return False
    with open(found[-1] / _name(state), "rb") as source:
        state.load(source)
    return True


def _models_train():
    return _job.agent() or _runtime.is_open() and bool(_runtime.runtime().models)


def _name(state):
    return next(name for name, one in states().items() if one is state)


def _checkpoints(folder):
    """The finished ones, the newest last."""
    if not folder.is_dir():
        return []
    found = [p for p in folder.iterdir() if p.name.startswith(_FOLDER) and p.name[len(_FOLDER):].isdigit()]
    return sorted(found, key=lambda p: int(p.name[len(_FOLDER):]))
