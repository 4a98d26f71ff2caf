"""What AdaptDL's environment variables say of this process, and whether an agent of Espalier's has started it."""
import os

_NUMBERS = ("ADAPTDL_REPLICA_RANK", "ADAPTDL_NUM_REPLICAS", "ADAPTDL_NUM_RESTARTS")


def agent():
    """Whether an agent of Espalier's has started this process."""
    return "ESPALIER_CONTROL_FD" in os.environ


def number_process():
    """Whether they number this process, which no agent has started."""
    return not agent() and any(name in os.environ for name in _NUMBERS)


def rank():
    return int(os.environ.get("ADAPTDL_REPLICA_RANK", "0"))


def replicas():
    return int(os.environ.get("ADAPTDL_NUM_REPLICAS", "1"))


def nodes():
    return int(os.environ.get("ADAPTDL_NUM_NODES") or replicas())
