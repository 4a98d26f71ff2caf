"""AdaptDL's environment: of an agent's trial, of a job that the variables number, or of a lone process."""
from espalier import env as _env
from espalier.env import adaptdl_sched_version, checkpoint_path, from_ray, job_id, master_addr, master_port
from espalier.env import num_restarts, share_path, supervisor_url

from adaptdl import _job, _variables

__all__ = [
    "adaptdl_sched_version", "checkpoint_path", "from_ray", "job_id", "master_addr", "master_port", "num_nodes",
    "num_replicas", "num_restarts", "replica_rank", "share_path", "supervisor_url",
]


def replica_rank():
    """The rank of this replica. Under an agent it is 0 before the first epoch, and may change with the group."""
    return _variables.rank() if _job.given() else _env.replica_rank()


def num_replicas():
    """How many replicas there are. Under an agent: 1 before the first epoch, and then what they are now."""
    return _variables.replicas() if _job.given() else _env.num_replicas()


def num_nodes():
    """On how many machines they are."""
    return _variables.nodes() if _job.given() else _env.num_nodes()
