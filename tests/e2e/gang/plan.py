"""What the scripts of this folder do beside training: each rank writes down its parameters and its model, and fails or stays as
it was planned. They know nothing of Espalier."""
import argparse
import hashlib
import itertools
import os
import pathlib
import signal
import sys
import traceback

STEPS = 3
FAILS_AT = 2  # after all have met

given = None  # the arguments


def arguments():
    """FAULT is one of none, exit:R, raise:R, signal:R and early:R of rank R; stay, or deaf to SIGTERM as well, of all."""
    global given
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--notes", type=pathlib.Path, required=True)
    parser.add_argument("--fault", default="none")
    parser.add_argument("--local_rank", type=int)  # of DeepSpeed
    given = parser.parse_args()
    note("pid", os.getpid())
    return given


# PyTorch now and then aborts an interpreter that ends while threads of a process group run ("terminate called without an
# active exception"), under torchrun alone as well.
def fail(*error):
    traceback.print_exception(*error)
    leave(1)


def leave(code=0):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def rank():
    return int(os.environ["RANK"])


def size():
    return int(os.environ["WORLD_SIZE"])


def note(name, text):
    path = given.notes / f"{name}-{rank()}"
    path.with_suffix(".new").write_text(str(text))
    path.with_suffix(".new").replace(path)


def stays():
    return given.fault in ("stay", "deaf")


def steps():
    """Their numbers; after each one follow() is to be called, with its loss."""
    return itertools.count(1) if stays() else range(1, STEPS + 1)


def follow(step, loss):
    print(f"rank {rank()} of {size()}: step={step} loss={loss}", flush=True)
    if step != FAILS_AT:
        return
    fault, _, whose = given.fault.partition(":")
    if fault == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note("stands", step)
    if not whose or int(whose) != rank():
        return
    if fault == "raise":
        sys.excepthook = fail  # in place of PyTorch's
        raise ValueError(f"rank {rank()} has read a bad sample")
    if fault == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    leave({"exit": 3, "early": 0}[fault])


def end(state):
    """`state`: names and tensors of the model, whole."""
    digest = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    note("model", f"{given.lr} {digest.hexdigest()}")
