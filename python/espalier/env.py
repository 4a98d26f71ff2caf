"""Where this replica is, under AdaptDL's names. Before the first epoch a replica is in no group yet: rank 0 of 1."""
import os

from espalier._runtime import is_open, runtime


def _position():
    return runtime().position if is_open() else None


def checkpoint_path() -> str | None:
    """The folder of the trial's checkpoints; None outside of a trial."""
    return os.environ.get("ESPALIER_CHECKPOINT_DIR") or os.environ.get("ADAPTDL_CHECKPOINT_PATH")


def share_path() -> str | None:
    """The folder that AdaptDL's replicas share (`ADAPTDL_SHARE_PATH`); None if it is not set."""
    return os.environ.get("ADAPTDL_SHARE_PATH")


def job_id() -> str | None:
    """The name of the study, which is AdaptDL's job; None outside of a trial."""
    return os.environ.get("ESPALIER_STUDY") or os.environ.get("ADAPTDL_JOB_ID")


def replica_rank() -> int:
    """The rank of this replica in its group, from 0."""
    return _position().rank if is_open() else 0


def num_replicas() -> int:
    """The number of replicas in the group; it changes between two batches."""
    return _position().replicas if is_open() else 1


def num_nodes() -> int:
    """The number of machines on which the group has replicas."""
    return _position().nodes if is_open() else 1


def num_restarts() -> int:
    """AdaptDL's count of restarts (`ADAPTDL_NUM_RESTARTS`), or 0: a resize restarts nothing here."""
    return int(os.environ.get("ADAPTDL_NUM_RESTARTS", "0"))


def master_addr() -> str:
    """`ADAPTDL_MASTER_ADDR`, as AdaptDL reads it; groups here form without it."""
    return os.environ.get("ADAPTDL_MASTER_ADDR", "0.0.0.0")


def master_port() -> int:
    """`ADAPTDL_MASTER_PORT`, as AdaptDL reads it; groups here form without it."""
    return int(os.environ.get("ADAPTDL_MASTER_PORT", "0"))


def adaptdl_sched_version() -> str | None:
    """The version of AdaptDL's scheduler (`ADAPTDL_SCHED_VERSION`); None if it is not set."""
    return os.environ.get("ADAPTDL_SCHED_VERSION")


def supervisor_url() -> str | None:
    """The address of AdaptDL's supervisor (`ADAPTDL_SUPERVISOR_URL`); None if it is not set."""
    return os.environ.get("ADAPTDL_SUPERVISOR_URL")


def from_ray() -> bool:
    """False: nodes on Ray run the same agent as others."""
    return False
