"""Process groups."""
import espalier.torch
import torch.distributed
from torch.distributed import TCPStore

from adaptdl import _job, collective, env


def init_process_group(backend=None, init_method=None, world_size=None, rank=None):
    """Under an agent and alone there is nothing to set up, and torch.distributed gets a group of this process
    alone. Between the processes of a job it makes a group of all of them, and initializes adaptdl.collective."""
    if not _job.given() or env.num_replicas() == 1:
        espalier.torch.init_process_group(backend, init_method, world_size, rank)
        if not collective.initialized():
            collective.initialize()
        return
    rank = env.replica_rank() if rank is None else rank
    world_size = env.num_replicas() if world_size is None else world_size
    address, port = env.master_addr(), env.master_port()
    if init_method is not None:
        address, port = init_method.removeprefix("tcp://").rsplit(":", 1)
    collective.initialize(address, int(port), rank, world_size)
    # Rank 0 is told a port by who holds it, so that nobody can take it in between.
    store = TCPStore(address, 0, is_master=True, wait_for_workers=False) if rank == 0 else None
    port = collective.broadcast(store and store.port)
    torch.distributed.init_process_group(
        backend, store=store or TCPStore(address, port, is_master=False), rank=rank, world_size=world_size)
