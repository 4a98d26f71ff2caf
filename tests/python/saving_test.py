"""Programs that are asked to save, and end by themselves: for another number of slots, and where their study is stopped."""
import json
import pathlib
import signal
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest, wait_for  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
