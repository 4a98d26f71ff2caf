"""The file to which a peer's replicas write each step: its moment, and how many they are."""
import time

PATIENCE_S = 120


def await_step(log, replicas, after):
    """When the first step of so many replicas was done after a moment."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with open(log) as file:
            for line in file.read().split("\n")[:-1]:
                when, size = line.split()
                if float(when) > after and int(size) == replicas:
                    return float(when)
        time.sleep(0.02)
    raise TimeoutError(f"no step of {replicas} replicas in {PATIENCE_S} s")
