"""Population-based training by Ray Tune, with the small workload.

usage: ray_pbt.py MEMBERS SLOTS EPOCHS STEPS REUSE: prints {"pauses_s": [...], "wall_s": ..., "best": ...}

A pause is from the end of a member's last epoch before it takes over from another to the beginning of the next one.
"""
import json
import os
import statistics
import sys
import tempfile
import time


def main(folder, members, slots, epochs, steps, reuse):
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    import ray
    from ray import tune
    from ray.tune.schedulers import PopulationBasedTraining
    here = os.path.dirname(os.path.abspath(__file__))
    log = os.path.join(folder, "epochs")

    class Member(tune.Trainable):
        def setup(self, config):
            import torch
            sys.path.insert(0, config["here"])
            import models
            torch.set_num_threads(1)
            torch.manual_seed(0)
            self.torch, self.models, self.restored = torch, models, False
            self.net, self.inputs, self.labels, self.batch = models.make("small")
            self.optimizer = models.make_optimizer(self.net)
            self.take(config)

        def take(self, config):
            for group in self.optimizer.param_groups:
                group["lr"] = config["lr"]

        def reset_config(self, config):
            self.take(config)
            return True

        def note(self, what):
            with open(self.config["log"], "a") as out:
                out.write(f"{time.time()} {self.trial_id} {what}\n")

        def step(self):
            self.note("restored" if self.restored else "begin")
            self.restored = False
            losses = []
            for _ in range(steps):
                rows = self.torch.randint(len(self.inputs), (self.batch,))
                self.optimizer.zero_grad()
                loss = self.torch.nn.functional.cross_entropy(self.net(self.inputs[rows]), self.labels[rows])
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            self.note("end")
            return {"loss": sum(losses) / len(losses)}

        def save_checkpoint(self, folder):
            self.models.save(folder, self.net, self.optimizer)

        def load_checkpoint(self, folder):
            self.models.load(folder, self.net, self.optimizer)
            self.take(self.config)
            self.restored = True

    ray.init(num_cpus=slots, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    scheduler = PopulationBasedTraining(time_attr="training_iteration", metric="loss", mode="min", perturbation_interval=1,
                                        hyperparam_mutations={"lr": tune.loguniform(1e-4, 0.5)})
    begun = time.time()
    analysis = tune.run(Member, config={"here": here, "log": log, "lr": tune.loguniform(1e-4, 0.5)}, num_samples=members,
                        resources_per_trial={"cpu": 1}, verbose=0, storage_path=folder, scheduler=scheduler,
                        stop={"training_iteration": epochs}, reuse_actors=reuse)
    wall_s = time.time() - begun
    last_end, pauses = {}, []
    for line in open(log):
        at, trial, what = line.split()
        if what == "end":
            last_end[trial] = float(at)
        elif what == "restored" and trial in last_end:
            pauses.append(float(at) - last_end[trial])
    best = min(trial.last_result["loss"] for trial in analysis.trials)
    exploits = scheduler._num_perturbations
    ray.shutdown()
    print(json.dumps({"pauses_s": sorted(pauses), "exploits": exploits, "wall_s": wall_s, "best": best,
                      "pause_p50_s": statistics.median(pauses) if pauses else None}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="espalier-ray-pbt-", ignore_cleanup_errors=True) as storage:
        main(storage, *map(int, sys.argv[1:5]), sys.argv[5] == "reuse")
