"""A loop over an AdaptiveDataLoader that is resized and restarted midway, again and again, goes on with exactly the
samples that are left: AdaptDL's test_dataloader_restarts, for resizes as well, and with shares that differ by one."""
import collections
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LEASE_S, TunerTest, wait_for  # noqa: E402

SAMPLES, BATCH = 203, 10
STOP = 0  # the trial is stopped, and started again from what it has saved
SLOTS = (3, 1, 2, STOP, 1, 3, STOP, 2)
PROGRAM = """
import os, pathlib, sys, threading
import torch
import espalier, espalier.torch as adl

trial = espalier.trial()
folder, samples, batch = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.0)
model = adl.AdaptiveDataParallel(model, optimizer)
data = torch.utils.data.TensorDataset(torch.arange(samples))
loader = adl.AdaptiveDataLoader(data, batch_size=batch, shuffle=True, num_workers=1)
log = open(folder / f"seen-{trial.number}-{os.getpid()}", "a", encoding="utf-8")

assert adl.current_dataloader() is None
for epoch in adl.epochs(1_000_000):
    for numbers, in loader:
        assert adl.current_dataloader() is loader
        assert loader.current_local_bsz == len(numbers) and loader.current_batch_size == batch
        step, replicas = model.steps, model.replicas
        threading.Event().wait(0.02)  # so that an epoch is not over before the group is changed
        model(numbers[:, None].float()).mean().backward()
        optimizer.step()
        print(epoch, step, replicas, *numbers.tolist(), file=log, flush=True)
    assert adl.current_dataloader() is None
    if adl.evaluate(lambda _: {"stop": (folder / "stop").exists()}, 1, 1)["stop"]:
        break
trial.report(epoch, 0.0)
"""


class LoggedTrial(TunerTest):
    def seen(self):
        """(epoch, step, replicas, samples) of each batch of each replica."""
        lines = [line.split() for path in self.dir.glob("seen-*") for line in path.read_text().splitlines(True)
                 if line.endswith("\n")]
        return [(int(e), int(s), int(r), [int(n) for n in numbers]) for e, s, r, *numbers in lines]

    def trial(self):
        trial = self.export("--service", self.grpc)["trials"][0]
        self.assertNotEqual(trial["state"], "TRIAL_FAIL", self.log())
        return trial

    def log(self):
        return "\n".join(p.read_text() for p in self.dir.rglob("replica-*.log"))


class Restarts(LoggedTrial):
    def stop_and_resume(self):
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: self.run_tuner("pool", "--service", self.grpc).stdout.startswith("0 of 3 slots"),
                 "all replicas to leave")
        self.assertEqual(self.trial()["state"], "TRIAL_PAUSED")
        self.run_tuner("resume", "e2e", "--service", self.grpc)

    def train(self):
        """To the trial's end, over all the changes."""
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.agent(3)
        program = self.write("program.py", PROGRAM)
        study = self.study([sys.executable, program, str(self.dir), str(SAMPLES), str(BATCH)], trials=1, max_restarts=0)
        self.run_tuner("submit", study, "--service", self.grpc)
        wait_for(self.seen, "the first steps", patience_s=240)
        for slots in SLOTS:
            if slots == STOP:
                self.stop_and_resume()
                continue
            before = max(step for _, step, _, _ in self.seen())
            self.run_tuner("pin", "e2e", 0, "--slots", slots, "--service", self.grpc)
            wait_for(lambda: any(step > before and replicas == slots for _, step, replicas, _ in self.seen()),
                     f"steps of {slots} replicas", patience_s=240)
        (self.dir / "stop").touch()
        wait_for(lambda: self.trial()["state"] == "TRIAL_COMPLETE", "its end", patience_s=240)

    def test_what_is_left_of_an_epoch_is_done_once(self):
        self.train()
        epochs, steps, sizes = (collections.defaultdict(list) for _ in range(3))
        for epoch, step, replicas, numbers in self.seen():
            epochs[epoch] += numbers
            steps[epoch, step].append(len(numbers))
            sizes[epoch].append(replicas)
        self.assertEqual(sorted(epochs), list(range(1, max(epochs) + 1)))
        for epoch, numbers in epochs.items():
            self.assertEqual(sorted(numbers), list(range(SAMPLES)), f"epoch {epoch}\n{self.log()}")
        for (epoch, step), shares in steps.items():
            self.assertIn(sum(shares), (BATCH, SAMPLES % BATCH), f"step {step} of epoch {epoch}")
            self.assertLessEqual(max(shares) - min(shares), 1, f"step {step} of epoch {epoch}")
        self.assertTrue(any(len(set(of)) > 1 for of in sizes.values()), "a group changed within an epoch")


VALIDATION = """
import os, pathlib, sys, threading
import torch
import espalier, espalier.torch as adl

trial = espalier.trial()
folder, samples = pathlib.Path(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.0)
model = adl.AdaptiveDataParallel(model, optimizer)
data = torch.utils.data.TensorDataset(torch.arange(samples))
training, validation = (adl.AdaptiveDataLoader(data, batch_size=samples) for _ in range(2))
log = open(folder / f"seen-{trial.number}-{os.getpid()}", "a", encoding="utf-8")

for epoch in adl.epochs(1_000_000):
    for numbers, in training:
        model(numbers[:, None].float()).mean().backward()
        optimizer.step()
    for numbers, in validation:
        if model.replicas == 2:
            (folder / "validating").touch()
            threading.Event().wait(6 if model.rank == 1 else 1.6)
        print(epoch, model.steps, model.replicas, *numbers.tolist(), file=log, flush=True)
    if adl.evaluate(lambda _: {"stop": (folder / "stop").exists()}, 1, 1)["stop"]:
        break
trial.report(epoch, 0.0)
"""


class SlowValidation(LoggedTrial):
    """A replica takes seconds longer than the other for its share of a validation."""

    def train(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.agent(2)
        program = self.write("program.py", VALIDATION)
        study = self.study([sys.executable, program, str(self.dir), str(SAMPLES)], trials=1, max_restarts=0)
        self.run_tuner("submit", study, "--service", self.grpc)
        self.run_tuner("pin", "e2e", 0, "--slots", 2, "--service", self.grpc)
        wait_for((self.dir / "validating").exists, "a validation on two replicas", patience_s=240)
        self.run_tuner("pin", "e2e", 0, "--slots", 1, "--service", self.grpc)
        before = max((epoch for epoch, _, _, _ in self.seen()), default=0)
        wait_for(lambda: any(epoch > before + 1 and replicas == 1 for epoch, _, replicas, _ in self.seen()),
                 "an epoch of one replica", patience_s=240)
        (self.dir / "stop").touch()
        wait_for(lambda: self.trial()["state"] == "TRIAL_COMPLETE", "its end", patience_s=240)

    def test_a_planned_resize_waits_for_its_end(self):
        self.train()
        epochs = collections.defaultdict(list)
        for epoch, _, replicas, numbers in self.seen():
            epochs[epoch, replicas] += numbers
        self.assertIn(2, {replicas for _, replicas in epochs})
        self.assertEqual(len(epochs), len({epoch for epoch, _ in epochs}), "a validation is of one group")
        for (epoch, _), numbers in epochs.items():
            self.assertEqual(sorted(numbers), list(range(SAMPLES)), f"epoch {epoch}\n{self.log()}")


if __name__ == "__main__":
    unittest.main()
