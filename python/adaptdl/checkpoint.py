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

from adaptdl import _job, _saved, env

__all__ = ["State", "load_state", "save_all_states", "save_state"]

_UNFINISHED = "_checkpoint"


def save_all_states():
    """Saves every state: merges and syncs them on all replicas, and writes them on rank 0, so that a half-written
    checkpoint is never found. Returns the folder on rank 0 if there is one. Where a model trains, Espalier's own
    checkpoints hold them, and this does nothing."""
    if _saved.models_train():
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
    done = folder / f"{_saved.FOLDER}{env.num_restarts()}"
    if done.exists():
        shutil.rmtree(done)
    (folder / _UNFINISHED).mkdir(exist_ok=True)
    os.rename(folder / _UNFINISHED, done)
    for other in _saved.finished(folder):
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
    with open(unfinished / _saved.name(state), "wb") as out:
        state.save(out)


def load_state(state):
    """Loads what `save_all_states` saved last. Returns whether there was something. Where a model trains, its
    states come in the first epoch instead."""
    return _saved.load(state)
