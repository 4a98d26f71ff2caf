"""An objective of elastic_test.py, which the pool's trials import by name."""
import os
import pathlib
import time

import objectives


def until_two_replicas(trial):
    """That of objectives.py, once the test has said on how many slots it begins: then there is a file of its number."""
    gate = pathlib.Path(os.environ["GATES"]) / os.environ["ESPALIER_TRIAL_NUMBER"]
    while not gate.exists():
        time.sleep(0.02)
    return objectives.until_two_replicas(trial)
