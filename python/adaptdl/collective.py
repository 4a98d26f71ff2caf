"""Small values of any kind over all replicas, which call the same functions in the same order. Between the
processes of a job that AdaptDL's variables number they go through rank 0; under an agent through the trial's
group, which there is from the first epoch on: until then a replica is alone, as adaptdl.env says.

Values are pickled, so only processes of the job may reach rank 0's port: it listens at ADAPTDL_MASTER_ADDR alone,
and on this machine where that is not set.
"""
import concurrent.futures
import operator
import pickle

from espalier._runtime import runtime
from espalier._the_trial import the_trial
from espalier.errors import TrialError
from espalier.torch.evaluation import summed

from adaptdl import _exchange, _job, env

__all__ = ["allreduce", "allreduce_async", "broadcast", "initialize", "initialized", "teardown"]

_initialized = False


def initialize(master_addr=None, master_port=None, replica_rank=None, num_replicas=None):
    """Waits for the other processes of the job. What is not given is what adaptdl.env says."""
    global _initialized
    if _initialized:
        raise RuntimeError("adaptdl.collective is already initialized")
    if _job.given():
        _exchange.of_job(master_addr, master_port, replica_rank, num_replicas)
    else:
        the_trial()
    _initialized = True


def initialized():
    """Whether `initialize` was called."""
    return _initialized


def teardown():
    """Ends what `initialize` began, on all replicas."""
    global _initialized
    _expect_initialized()
    _initialized = False
    _exchange.close()


def allreduce(value, reduce_fn=operator.iadd):
    """`reduce_fn` over the values of all replicas, in the order of their ranks; the usual one adds them up."""
    return allreduce_async(value, reduce_fn).result()


def allreduce_async(value, reduce_fn=operator.iadd):
    """The same as a future. Under an agent it is done when this returns."""
    _expect_initialized()
    result = concurrent.futures.Future()

    def reduce(gathered):
        try:
            first, *others = (pickle.loads(part) for part in gathered.result())
            for other in others:
                first = reduce_fn(first, other)
            result.set_result(first)
        except Exception as error:  # raised by result()
            result.set_exception(error)
    _gather_async(pickle.dumps(value)).add_done_callback(reduce)
    return result


def broadcast(value):
    """Rank 0's value."""
    _expect_initialized()
    return pickle.loads(_gather_async(pickle.dumps(value if env.replica_rank() == 0 else None)).result()[0])


def _expect_initialized():
    if not _initialized:
        raise RuntimeError("adaptdl.collective has not been initialized")


def _gather_async(part):
    if _job.given():
        return _exchange.of_job().gather(part)
    gathered = concurrent.futures.Future()
    gathered.set_result(_gather_over_trial(part))
    return gathered


def _gather_over_trial(part):
    run = runtime()
    if not run.in_group:
        return [part]
    of_all = summed(run, "adaptdl.collective", lambda: {"parts": [(run.position.rank, part)]})
    if "parts" not in of_all:
        raise TrialError("adaptdl.collective: others made this call long ago, and its values are no longer kept")
    return [one for _, one in sorted(of_all["parts"])]
