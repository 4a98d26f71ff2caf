"""The file to which a peer's replicas write each step: its moment, and how many they are; and a port for them to meet."""
import socket
import time

PATIENCE_S = 120


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def read_steps(log):
    """[(moment, replicas)...], of whole lines."""
    with open(log) as file:
        return [(float(when), int(size)) for when, size in map(str.split, file.read().split("\n")[:-1])]


def await_step(log, replicas, after):
    """When the first step of so many replicas was done after a moment."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        first = next((when for when, size in read_steps(log) if when > after and size == replicas), None)
        if first is not None:
            return first
        time.sleep(0.02)
    raise TimeoutError(f"no step of {replicas} replicas in {PATIENCE_S} s")


def await_change(log, replicas, request):
    """Waits for the change to so many replicas: milliseconds from the last step before it to the first
    step after it, and from the request to that step."""
    first = await_step(log, replicas, request)
    last = max(when for when, size in read_steps(log) if when < first and size != replicas)
    return [1000 * (first - last), 1000 * (first - request)]
