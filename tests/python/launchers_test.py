"""Trials of several slots: torchrun as a trial's command, and what an elastic program has of the same slots."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest  # noqa: E402

# Data parallel, and nothing in it is ours. The trials wait for one another, so that they meet on the machine, and the second
# one stays.
RANKS = """import os, pathlib, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([rank + 1.0])
dist.all_reduce(total)
assert total.item() == size * (size + 1) / 2
folder, trial, x = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
(folder / f"{trial}-{rank}").write_text(f"{size} {x} {os.getpid()}")
while len(list(folder.iterdir())) < 2 * size:
    time.sleep(0.05)
dist.barrier()
if trial == "1":
    time.sleep(1000)
if rank == 0:
    print("loss=0.5")
dist.destroy_process_group()
"""
# As an agent starts the first process of a trial that holds two slots, but that its own GPU is none: there may be none here.
FIRST = {"CUDA_VISIBLE_DEVICES": "GPU-aa,GPU-bb", "ESPALIER_OWN_GPU": "-1", "ESPALIER_SLOTS": "2",
         "ESPALIER_THREADS": "2", "OMP_NUM_THREADS": "2", "ESPALIER_OWN_THREADS": "1"}
ELASTIC = """import os, subprocess, sys
import espalier, torch
trial = espalier.trial()
seen = [sys.executable, "-c", "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"]
print(torch.get_num_threads(), os.environ["CUDA_VISIBLE_DEVICES"], subprocess.check_output(seen, text=True))
"""


class Launchers(TunerTest):
    def test_torchrun_has_all_slots_of_its_trial_and_two_do_not_meet(self):
        met = self.dir / "met"
        met.mkdir()
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
        command = 'exec "$0" "$1" "$2" "$3" "$ESPALIER_SLOTS" "$4" "$5" "$6" "$7"'
        study = self.study(["sh", "-c", command, *torchrun, self.write("ranks.py", RANKS), str(met), "{trial}", "{x}"],
                           search_space={"x": {"_type": "randint", "_value": [0, 100]}}, target=1, slots=2, trials=2,
                           stop_grace_s=1, metric={"name": "loss", "from_output": "^loss=([0-9.]+)$"})
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 4)
        record = self.export("--db", self.dir / "run/espalier.db")
        self.assertIn("reached the target", record["study"]["reason"])
        self.assertEqual(record["trials"][0]["state"], "TRIAL_COMPLETE")
        for number, trial in enumerate(record["trials"]):
            slots = [slot["index"] for slot in trial["spans"][0]["slots"]]
            self.assertEqual(slots, [2 * number, 2 * number + 1], "all that it holds is on record")
            x = json.loads(trial["parameters"][0]["json"])
            for rank in range(2):
                size, given, process = (met / f"{number}-{rank}").read_text().split()
                self.assertEqual((size, given), ("2", str(x)), "all ranks have the same parameters")
                self.assertFalse(pathlib.Path("/proc", process).exists(), "nothing is left of a trial")

    def test_a_trial_has_the_gpu_and_the_threads_of_its_own_slot(self):
        told = subprocess.run([sys.executable, "-c", ELASTIC], env=dict(os.environ, **FIRST), capture_output=True, text=True)
        self.assertEqual(told.stdout.split(), ["1", "-1", "-1"], told.stderr)


if __name__ == "__main__":
    unittest.main()
