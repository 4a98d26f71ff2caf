"""Programs whose second replica fails, at whatever stage: the trial goes on at the size at which it works."""
import os
import pathlib
import signal
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, SharedPoolTest, kill, wait_for  # noqa: E402

# What only the first replica can do. It trains until the file is there.
PROGRAM = """
import os, pathlib, signal, socket, sys
from time import sleep as pause
import torch
import espalier, espalier.torch as adl

stage, stop = sys.argv[1], pathlib.Path(sys.argv[2])
trial = espalier.trial()
first = not (trial.directory / "begun").exists()
if stage == "folder":
    (trial.directory / "out").mkdir()
if stage == "end" and not first:
    sys.exit(0)
if stage == "signal" and not first:
    os.kill(os.getpid(), signal.SIGSEGV)
width = 9 if stage == "model" and not first else 8
(trial.directory / "begun").touch()
class Net(torch.nn.Sequential):
    def forward(self, x, *, scale):
        return super().forward(x * scale)
net = Net(torch.nn.Linear(6, width), torch.nn.Linear(width, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.01)
model = adl.AdaptiveDataParallel(net, optimizer)
if stage == "wrapped" and not first:
    raise RuntimeError("after its model is wrapped")
x = torch.randn(64, 6)
loader = adl.AdaptiveDataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
for epoch in adl.epochs(100_000):
    if stage == "epoch" and model.rank == 1:
        raise RuntimeError("in its first epoch")
    for a, b in loader:
        torch.nn.functional.mse_loss(model(a, scale=1), b).backward()
        optimizer.step()
        if stage == "step" and model.rank == 1:
            raise RuntimeError("after its first step")
    trial.report(epoch, 0.0)
    pause(0.05)
    if adl.evaluate(lambda _: {"stop": stop.exists()}, 1, 1)["stop"]:
        break
"""
# What is said of the last one, by the stage at which it fails.
SAID = {"folder": "exited with code 1: FileExistsError: ", "end": "exited with code 0",
        "signal": "was killed by signal 11", "wrapped": "exited with code 1: RuntimeError: after its model is wrapped",
        "model": "0.weight is Float [9, 6] in this replica and Float [8, 6] in the group that it joins",
        "epoch": "exited with code 1: RuntimeError: in its first epoch",
        "step": "exited with code 1: RuntimeError: after its first step"}


class Joins(SharedPoolTest):
    def trial(self):
        return self.export()["trials"][0]

    def begin(self, stage):
        """A study of one trial that has both slots for itself; it ends when the file is there."""
        self.name += f"_{stage}"
        stop = self.dir / f"stop-{stage}"
        command = [sys.executable, self.write("joins.py", PROGRAM), stage, str(stop)]
        self.run_tuner("submit", self.study(command, trials=1, max_restarts=0), "--service", self.grpc)
        return stop

    def started(self):
        return len(list((self.folder() / "trial-0").glob("replica-*.log")))

    def await_epochs(self, more):
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) >= before + more, "its next reports")

    def check(self, stage):
        stop = self.begin(stage)
        wait_for(lambda: self.export()["trials"] and self.trial()["not_growing"], "it to stay at its size", LONG_S)
        self.await_epochs(20)
        trial = self.trial()
        why = "does not grow beyond 1 replica: 3 in a row that were to join failed, the last one "
        self.assertTrue(trial["not_growing"].startswith(why), trial["not_growing"])
        self.assertIn(SAID[stage], trial["not_growing"])
        self.assertEqual((trial["state"], trial["restarts"], trial["failed_joins"]), ("TRIAL_RUNNING", 0, 3))
        self.assertEqual(self.started(), 4, "the first one, and three that were to join it")
        shown = self.run_tuner("show", self.name, "--trial", 0, "--service", self.grpc).stdout
        self.assertIn(trial["not_growing"], shown)
        if stage in ("epoch", "step"):
            line = next(line for line in shown.splitlines() if line.startswith("rehearsal"))
            self.assertIn("the forward pass of its model on a batch of the training loader: TypeError: ", line)
        self.assertIn(f"note: trial 0 {why}", self.watched())
        stop.touch()
        wait_for(lambda: self.trial()["state"] == "TRIAL_COMPLETE", "its end")
        steps = [int(value["step"]) for value in self.trial()["values"]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)), "no report was lost or came twice")

    def watched(self):
        """What `tuner watch` prints of the study where nobody sits at a terminal."""
        watch = self.start("watch", self.name, "--service", self.grpc)
        wait_for(lambda: "note: " in self.output(watch), "the note")
        kill(watch.pid, signal.SIGINT)
        watch.wait(timeout=LONG_S)
        return self.output(watch)

    def test_in_its_first_epoch(self):
        self.check("epoch")

    def test_with_another_model(self):
        self.check("model")

    def test_before_it_is_ready(self):
        for stage in ("folder", "signal", "end", "wrapped"):
            name = self.name
            with self.subTest(stage):
                self.check(stage)
            self.name = name

    def test_after_its_first_step(self):
        self.check("step")

    def test_another_machine_is_a_reason_to_try_again(self):
        stop = self.begin("epoch")
        wait_for(lambda: self.export()["trials"] and self.trial()["not_growing"], "it to stay at its size", LONG_S)
        other = self.pool.agent(1, name="other")
        self.addCleanup(self.run_tuner, "drain", "other", "--service", self.grpc)
        wait_for(lambda: self.started() + len(list((self.pool.dir / "agent-other").rglob("replica-*.log"))) >= 7
                 and self.trial()["not_growing"], "three more", LONG_S)
        reasons = [d["reason"] for d in self.export()["decisions"]]
        self.assertIn("may grow again: node other has joined the pool", reasons)
        stop.touch()
        wait_for(lambda: self.trial()["state"] == "TRIAL_COMPLETE", "its end")
        self.assertEqual(self.trial()["restarts"], 0)
        kill(other.pid, signal.SIGTERM)
        other.wait(timeout=LONG_S)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
