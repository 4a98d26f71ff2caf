"""Resizing 1->2 and 2->1 CPUs by Ray Tune's ResourceChangingScheduler, with the small workload.

usage: ray_resize.py: prints {"grow": [[still ms, request ms]...], "shrink": ...}, as in step_log.await_change

The scheduler pauses the trial with a checkpoint and starts it again with other resources. The request
is the moment at which the scheduler's allocation function first answers with the new size, which it
does upon a result. The trial is one process, whose threads follow the
number of CPUs; that no group of replicas has to be formed is in Ray's favour.
"""
import json
import os
import sys
import tempfile
import time

ROUNDS = 3
STEPS_A_RESULT = 20
RESULTS_A_SIZE = 10


def main(folder):
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    import ray
    from ray import tune
    from ray.tune.schedulers import FIFOScheduler, ResourceChangingScheduler
    sys.path.insert(0, os.path.dirname(__file__))

    class Training(tune.Trainable):
        def setup(self, config):
            import torch
            import torch.nn.functional as F
            sys.path.insert(0, config["here"])
            import models
            cpus = int(self.trial_resources.head_cpus or 1)
            torch.set_num_threads(cpus)
            self.cpus, self.torch, self.models = cpus, torch, models
            self.loss, self.log = F.cross_entropy, config["log"]
            self.net, self.inputs, self.labels, self.batch = models.make("small")
            self.optimizer = models.make_optimizer(self.net)

        def step(self):
            with open(self.log, "a") as out:
                for _ in range(STEPS_A_RESULT):
                    rows = self.torch.randint(len(self.inputs), (self.batch,))
                    self.optimizer.zero_grad()
                    self.loss(self.net(self.inputs[rows]), self.labels[rows]).backward()
                    self.optimizer.step()
                    out.write(f"{time.monotonic()} {self.cpus}\n")
            return {"loss": 0.0}

        def save_checkpoint(self, folder):
            self.models.save(folder, self.net, self.optimizer)

        def load_checkpoint(self, folder):
            self.models.load(folder, self.net, self.optimizer)

    asked = []  # (moment, size) of each size that was new

    def allocate(controller, trial, result, scheduler):
        size = 1 + (result["training_iteration"] // RESULTS_A_SIZE) % 2
        if not asked or asked[-1][1] != size:
            asked.append((time.monotonic(), size))
        return tune.PlacementGroupFactory([{"CPU": size}])

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    log = os.path.join(folder, "steps")
    tune.run(Training, config={"here": os.path.dirname(os.path.abspath(__file__)), "log": log},
             num_samples=1, resources_per_trial={"cpu": 1}, verbose=0, storage_path=folder,
             stop={"training_iteration": RESULTS_A_SIZE * (2 * ROUNDS + 1)},
             scheduler=ResourceChangingScheduler(base_scheduler=FIFOScheduler(),
                                                 resources_allocation_function=allocate))
    steps = [(float(when), int(cpus)) for when, cpus in map(str.split, open(log))]
    found = {"grow": [], "shrink": []}
    for (before, old), (after, new) in zip(steps, steps[1:]):
        if old != new:
            request = max(when for when, size in asked if when < after and size == new)
            found["grow" if new > old else "shrink"].append([1000 * (after - before), 1000 * (after - request)])
    ray.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="espalier-ray-resize-", ignore_cleanup_errors=True) as storage:
        main(storage)
