"""Trials with a "launch" that train with PyTorch: their ranks train one model, and one that fails is the trial's reason."""
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest  # noqa: E402

# Trial 1's second rank fails, while the first one waits for it.
PARALLEL = """import os
import sys
import traceback
print("imported before:", "torch" in sys.modules, flush=True)
import torch
import torch.distributed as dist
def fail(*error):
    traceback.print_exception(*error)
    sys.stderr.flush()
    os._exit(1)  # PyTorch's threads may meet the interpreter's end: "terminate called without an active exception"
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), float(sys.argv[2]))
for step in range(1, 4):
    if sys.argv[1] == "1" and rank == 1 and step == 2:
        sys.excepthook = fail  # in place of PyTorch's
        raise ValueError("rank 1 has read a bad sample")
    optimizer.zero_grad()
    loss = model(torch.full((4, 1), float(rank))).square().mean()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    print(f"rank {rank} of {size}, step={step} loss={total.item()}", flush=True)
dist.destroy_process_group()
os._exit(0)  # as above
"""


class Launch(TunerTest):
    def check(self, launch, imported="False", **keys):
        study = self.study([sys.executable, self.write("parallel.py", PARALLEL), "{trial}", "{x}"], launch=launch,
                           search_space={"x": {"_type": "uniform", "_value": [0.01, 0.1]}}, slots=2, trials=2, stop_grace_s=1,
                           metric={"name": "loss", "from_output": "step=(?P<step>[0-9]+) loss=(.*)"}, **keys)
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 4, env=dict(os.environ, MASTER_PORT="1"))
        trained, failed = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual(trained["state"], "TRIAL_COMPLETE", trained)
        self.assertEqual([int(value["step"]) for value in trained["values"]], [1, 2, 3])
        folder, = (self.dir / "run").rglob("trial-0")
        log, = folder.glob("replica-*.rank-1.log")
        self.assertEqual(len(re.findall("^rank 1 of 2, step=", log.read_text(), re.MULTILINE)), 3)
        self.assertIn(f"imported before: {imported}\n", log.read_text())
        self.assertRegex(failed["reason"], r"^rank 1 of 2 on \S+ exited with code 1")
        self.assertIn("ValueError: rank 1 has read a bad sample", failed["last_output"])
        self.assertNotIn("onnection", failed["last_output"], "which is rank 0's")

    def test_ranks_of_our_own(self):
        self.check("ranks")

    def test_ranks_that_are_forked(self):
        self.check("ranks", "True", preload=["torch"], env={"PYTHONPATH": str(ROOT / "python")})

    def test_torchrun(self):
        self.check("torchrun")

    def test_torchrun_that_is_forked(self):
        self.check("torchrun", preload=["torch"], env={"PYTHONPATH": str(ROOT / "python")})


if __name__ == "__main__":
    unittest.main()
