"""Where this replica is, under AdaptDL's names. Before the first epoch a replica is in no group yet: rank 0 of 1."""
import os

from espalier._runtime import is_open, runtime


def _position():
    return runtime().position if is_open() else None


def checkpoint_path() -> str | None:
    return os.environ.get("ESPALIER_CHECKPOINT_DIR") or os.environ.get("ADAPTDL_CHECKPOINT_PATH")


def share_path() -> str | None:
    return os.environ.get("ADAPTDL_SHARE_PATH")


def job_id() -> str | None:
    return os.environ.get("ESPALIER_STUDY") or os.environ.get("ADAPTDL_JOB_ID")


def replica_rank() -> int:
    return _position().rank if is_open() else 0


def num_replicas() -> int:
    return _position().replicas if is_open() else 1


def num_nodes() -> int:
    return _position().nodes if is_open() else 1


def num_restarts() -> int:
    return int(os.environ.get("ADAPTDL_NUM_RESTARTS", "0"))


def master_addr() -> str:
    return os.environ.get("ADAPTDL_MASTER_ADDR", "0.0.0.0")


def master_port() -> int:
    return int(os.environ.get("ADAPTDL_MASTER_PORT", "0"))


def adaptdl_sched_version() -> str | None:
    return os.environ.get("ADAPTDL_SCHED_VERSION")


def supervisor_url() -> str | None:
    return os.environ.get("ADAPTDL_SUPERVISOR_URL")


def from_ray() -> bool:
    return False
