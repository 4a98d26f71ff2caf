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
    print("loss=0.5", flush=True)
dist.destroy_process_group()
os._exit(0)  # PyTorch's threads may meet the interpreter's end: "terminate called without an active exception"
"""
# Its ranks report alike, or each its own, and one after the other: now the one is first, now the other.
REPORTS = """import os, pathlib, sys, time
import espalier
trial = espalier.trial()
rank, kind, told = int(os.environ["RANK"]), trial.get("kind"), pathlib.Path(sys.argv[1])
verdicts = []
for step in (1, 2, 3):
    other = told / f"{kind}-{step}-{1 - rank}"
    while (rank + step) % 2 == 0 and not other.exists():
        time.sleep(0.01)
    trial.report(step, trial.get("x") + step + (rank if kind == "unlike" else 0))
    verdicts.append(trial.should_stop(step))
    (told / f"{kind}-{step}-{rank}").write_text(f"{trial.get('x')} {verdicts} {trial.elastic}")
    while not other.exists():
        time.sleep(0.01)
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

    def test_the_ranks_of_a_program_are_one_trial(self):
        for ranks, kinds in (("same", ["alike", "unlike"]), ("mean", ["unlike"])):
            told = self.dir / ranks
            told.mkdir()
            command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", self.write("reports.py", REPORTS)]
            study = self.study([*command, str(told)], name=ranks, ranks=ranks, sampler="grid", slots=2, trials=len(kinds),
                               stop_grace_s=1, env={"PYTHONPATH": str(ROOT / "python")}, metric="loss",
                               search_space={"x": {"_type": "choice", "_value": [0.25]},
                                             "kind": {"_type": "choice", "_value": kinds}})
            run = self.dir / f"run-{ranks}"
            self.run_tuner("run", study, "--dir", run, "--slots", 2)
            trials = {json.loads(next(p["json"] for p in trial["parameters"] if p["name"] == "kind")): trial
                      for trial in self.export("--db", run / "espalier.db", study=ranks)["trials"]}
            ended = {kind: (trial["state"], [v["value"] for v in trial["values"]]) for kind, trial in trials.items()}
            if ranks == "mean":
                self.assertEqual(ended, {"unlike": ("TRIAL_COMPLETE", [1.75, 2.75, 3.75])}, trials)
                continue
            self.assertEqual(ended["alike"], ("TRIAL_COMPLETE", [1.25, 2.25, 3.25]), trials)
            for rank in range(2):
                self.assertEqual((told / f"alike-3-{rank}").read_text(), "0.25 [False, False, False] False")
            self.assertEqual(ended["unlike"], ("TRIAL_FAIL", [1.25]), trials)
            self.assertIn(", step 1: rank 1 reports 2.25, and rank 0 has reported 1.25: report from one rank alone, or let the "
                          'study say "ranks": "mean"', trials["unlike"]["last_output"])

    def test_a_trial_has_the_gpu_and_the_threads_of_its_own_slot(self):
        told = subprocess.run([sys.executable, "-c", ELASTIC], env=dict(os.environ, **FIRST), capture_output=True, text=True)
        self.assertEqual(told.stdout.split(), ["1", "-1", "-1"], told.stderr)


if __name__ == "__main__":
    unittest.main()
