"""Programs that are asked to save, and end by themselves: for another number of slots, and where their study is stopped."""
import json
import pathlib
import signal
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, TunerTest, wait_for  # noqa: E402

# Trains on until it may end, from the step that it has saved; what it has heard is a line of a file.
PROGRAM = """import os, pathlib, signal, sys, time
if sys.argv[2] == "without torch":
    sys.modules["torch"] = None  # as where it is not installed
import espalier
heard = open(sys.argv[1], "a", buffering=1)
signal.signal(signal.SIGTERM, lambda *_: (print("SIGTERM", file=heard), sys.exit(1)))
trial = espalier.trial()
saved = pathlib.Path(os.environ["ESPALIER_CHECKPOINT_DIR"], "step")
step, slots = int(saved.read_text()) if saved.exists() else 0, os.environ["ESPALIER_SLOTS"]
print("from", step, "on", slots, file=heard)
while True:
    step += 1
    time.sleep(0.05)
    trial.report(step, 1 / step)
    if trial.should_save(step):
        saved.write_text(str(step))
        print("saved", step, file=heard)
        sys.exit()
    if pathlib.Path(f"{sys.argv[1]}-on-{slots}-may-end").exists():
        break
"""

# What a step was made with is a line of one file, and how many there are is in another: both are rewritten in place, one
# after the other, so that a copy made meanwhile would not fit together.
MEMBER = """import json, os, pathlib, sys, time
import espalier
trial = espalier.trial()
folder = pathlib.Path(os.environ["ESPALIER_CHECKPOINT_DIR"])
weights, counted = folder / "weights", folder / "counted"
made = json.loads(weights.read_text()) if weights.exists() else []
if made and len(made) != int(counted.read_text()):
    sys.exit("the folder is of two moments")
print("from", len(made), flush=True)
for step in range(len(made) + 1, 13):
    made.append([trial.number, trial.get("lr", 0.0)])
    weights.write_text(json.dumps(made))
    time.sleep(0.05)
    counted.write_text(str(step))
    trial.report(step, 100 - sum(rate for _, rate in made))
    if step < 12 and trial.should_save(step):
        sys.exit()
"""


class Saving(TunerTest):
    def study_of(self, torch="without torch", **keys):
        command = [sys.executable, self.write("program.py", PROGRAM), str(self.dir / "heard-{which}"), torch]
        return self.study(command, env={"PYTHONPATH": str(ROOT / "python")}, sampler="grid", metric="loss",
                          search_space={"which": {"_type": "choice", "_value": ["a", "b"]}}, **keys)

    def heard(self, which):
        path = self.dir / f"heard-{which}"
        return path.read_text().splitlines() if path.exists() else []

    def let_end(self, which, slots):
        (self.dir / f"heard-{which}-on-{slots}-may-end").touch()

    def await_lines(self, which, count):
        wait_for(lambda: len(self.heard(which)) >= count, f"{count} lines of {which}: {self.heard(which)}")

    def test_a_plain_program_saves_and_is_started_on_more_slots(self):
        run = self.dir / "run"
        process = self.start("run", self.study_of(slots=[1, 2], resize="restart", trials=2), "--dir", run, "--slots", 2)
        for which in "ab":
            self.await_lines(which, 1)
        self.let_end("a", 1)
        self.await_lines("b", 3)
        self.let_end("b", 2)
        self.finish(process)
        first, saved, again = self.heard("b")
        step = saved.split()[1]
        self.assertEqual((first, saved, again), ("from 0 on 1", f"saved {step}", f"from {step} on 2"))
        trials = self.export("--db", run / "espalier.db")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["TRIAL_COMPLETE"] * 2, trials)
        grown = next(trial for trial in trials if json.loads(trial["parameters"][0]["json"]) == "b")
        steps = [int(value["step"]) for value in grown["values"]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)), "no step is lost")
        self.assertEqual(len(grown["resizes"]), 1, grown)

    def test_a_study_that_is_stopped_goes_on_from_what_was_saved(self):
        study, run = self.study_of("with torch", trials=1), self.dir / "run"
        process = self.start("run", study, "--dir", run, "--slots", 1)
        self.await_lines("a", 1)
        database = run / "espalier.db"
        wait_for(lambda: len(self.export("--db", database)["trials"][0]["values"]) > 1, "that it has reported, and asked")
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        self.let_end("a", 1)
        self.run_tuner("run", study, "--dir", run, "--slots", 1)
        first, saved, again = self.heard("a")
        self.assertEqual((first, again), ("from 0 on 1", f"from {saved.split()[1]} on 1"))

    def test_members_of_a_population_take_over_folders_of_one_moment(self):
        study, run = self.study(
            [sys.executable, self.write("member.py", MEMBER)], env={"PYTHONPATH": str(ROOT / "python")}, metric="loss",
            search_space={"lr": {"_type": "uniform", "_value": [0, 8]}}, points=[{"lr": rate} for rate in (1, 2, 3, 4)],
            trials=4, max_step=12, population={"interval": 3, "parameters": ["lr"]}), self.dir / "run"
        said = self.run_tuner("run", study, "--dir", run, "--slots", 2, timeout=LONG_S)
        trials = self.export("--db", run / "espalier.db")["trials"]
        clones = [trial for trial in trials if "step" in (trial.get("lineage") or {})]
        self.assertTrue(clones, said.stdout)
        self.assertLessEqual({trial["state"] for trial in trials}, {"TRIAL_COMPLETE", "TRIAL_PRUNED"}, trials)
        for trial in clones:
            begun, (own, parents) = trial["lineage"]["step"], (
                json.loads((run / f"trials/e2e/trial-{number}/checkpoints/weights").read_text())
                for number in (trial["number"], trial["lineage"]["parent"]))
            self.assertGreaterEqual(begun, 3)
            if len(parents) >= begun:
                self.assertEqual(own[:begun], parents[:begun], "what it began with")
            self.assertLessEqual({number for number, _ in own[begun:]}, {trial["number"]}, "from there on it went itself")
            steps = [value["step"] for value in trial["values"]]
            self.assertEqual(steps, list(range(begun + 1, begun + 1 + len(steps))))
        whole = [trial for trial in trials if trial["state"] == "TRIAL_COMPLETE" and not trial.get("lineage")]
        for trial in whole:
            self.assertEqual([value["step"] for value in trial["values"]], list(range(1, 13)), "nothing is lost")

    def test_a_clone_begins_with_what_its_parent_saves_when_asked(self):
        self.serve(self.dir / "pool.db")
        self.agent(2)
        service = ("--service", self.grpc)
        self.run_tuner("submit", self.study_of(trials=1, slots=1), *service)
        self.await_lines("a", 1)
        wait_for(lambda: len(self.export(*service)["trials"][0]["values"]) > 1, "that it has reported, and asked")
        self.run_tuner("clone", "e2e", 0, "--set", "which=b", *service)
        self.await_lines("a", 3)
        self.await_lines("b", 1)
        saved, again = self.heard("a")[1:3]
        step = saved.split()[1]
        self.assertEqual((again, self.heard("b")[0]), (f"from {step} on 1", f"from {step} on 1"))
        lineage = self.export(*service)["trials"][1]["lineage"]
        self.assertEqual((lineage["parent"], lineage["step"]), (0, int(step)))


if __name__ == "__main__":
    unittest.main()
