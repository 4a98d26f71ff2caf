"""espalier.testing resizes real trials, kills their replicas, and says what became of them."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BIN, wait_for  # noqa: E402

from espalier import EspalierError, StudyError, UsageError, testing  # noqa: E402

import objectives  # noqa: E402

TRAIN = [sys.executable, ROOT / "examples/python_fashion_mnist/fashion_mnist.py", "--epochs", 100_000, "--samples", 4000]


def is_there(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


class Testing(unittest.TestCase):
    def setUp(self):
        before = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        os.environ["PATH"] = f"{BIN}{os.pathsep}{before}"

    def test_a_lost_replica_costs_nothing(self):
        with testing.start(TRAIN, {"lr": 0.02}, slots=(1, 2)) as trial:    # TRAIN: a command
            trial.wait_for_step(1)
            trial.resize(2)
            lost = trial.kill()
            record = trial.wait_for_step(lost["step"] + 2)
            self.assertEqual(record["restarts"], 0)
            self.assertEqual([value["step"] for value in record["values"]], list(range(1, record["step"] + 1)))
            sizes = [(resize["from_replicas"], resize["to_replicas"], resize["after_loss"]) for resize in record["resizes"]]
            self.assertEqual(sizes[:2], [(1, 2, False), (2, 1, True)])

            trial.resize(2)  # the lost one is replaced
            there = trial.processes()
            self.assertEqual(len(there), 2)
            trial.resize(1)
            wait_for(lambda: trial.processes() == there[:1], "the replica to leave its slot")
            self.assertEqual(trial.kill()["restarts"], 1)  # there was no other
            folder, there = trial.directory, trial.processes()
        self.assertFalse(folder.exists())
        wait_for(lambda: not any(map(is_there, there)), "the replicas to end with the block")

    def test_a_trial_that_ends(self):
        with tempfile.TemporaryDirectory() as kept:
            with testing.start(objectives.quadratic, {"x": 0.5}, directory=kept) as trial:
                record = trial.wait()
                self.assertEqual((record["state"], record["parameters"]), ("TRIAL_COMPLETE", {"x": 0.5}))
                self.assertAlmostEqual(record["value"], 0.04)
                self.assertEqual([value["value"] for value in record["values"]], [11, 12])
                self.assertEqual(trial.wait(), record)
                self.assertEqual(trial.processes(), [])
                with self.assertRaisesRegex(EspalierError, "was to train on 2 replicas, and has ended before, in state "
                                                           "COMPLETE after step 2: let it train longer"):
                    trial.resize(2)
            self.assertTrue(pathlib.Path(kept, "espalier.db").exists())
            # The folder of an earlier one is begun anew.
            with testing.start(objectives.broken, {"x": 2}, directory=kept, max_restarts=0) as trial:
                with self.assertRaisesRegex(StudyError, "ValueError: on purpose"):
                    trial.wait()
                self.assertEqual(trial.wait(check=False)["state"], "TRIAL_FAIL")
                self.assertIn("x is 2.0\n", trial.output())
            with testing.start(objectives.asks_for_more, {"lr": 2}, directory=kept, max_restarts=0) as trial:
                with self.assertRaisesRegex(StudyError, 'the study has no parameter "lrr": it has lr$'):
                    trial.wait()
            with testing.start(objectives.gone, directory=kept, max_restarts=0) as trial:
                with self.assertRaisesRegex(StudyError, r"exited with code 1\nno data set$"):
                    trial.wait()

    def test_no_change_between_two_batches_of_a_step_counts_samples_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            script, stop = ROOT / "tests/python/evaluated_within_steps.py", pathlib.Path(folder, "stop")
            with testing.start([sys.executable, script, stop], slots=(1, 2)) as trial:
                trial.wait_for_step(1)
                for replicas in (2, 1) * 3:
                    step = trial.resize(replicas)["step"]
                    trial.wait_for_step(step + 2)
                stop.touch()
                record = trial.wait()
                said = trial.output()
        self.assertEqual(record["restarts"], 0)
        begun = [line for line in said.splitlines() if line.startswith("begins ")]
        self.assertGreater(len(begun), 1)
        self.assertEqual(len(begun), len(set(begun)), "of a process that comes and goes all is told once")
        self.assertEqual({value["value"] for value in record["values"]}, {80.0})

    def test_what_does_not_come_is_named_after_its_time(self):
        with testing.start(objectives.one_report_and_no_end) as trial:
            trial.wait_for_step(1)
            self.assertNotIn("was given but", trial.output())
            trial._timeout_s = 0.2
            with self.assertRaisesRegex(EspalierError, r"did not report step 2 within 0\.2 s"):
                trial.wait_for_step(2)

    def test_a_check_that_fails_tells_what_the_trial_did(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaisesRegex(AssertionError, "on purpose"):
            with testing.start(objectives.broken, {"x": 2}, max_restarts=0) as trial:
                trial.wait(check=False)
                raise AssertionError("on purpose")
        for part in ('"state": "TRIAL_FAIL"', "x is 2.0", "ValueError: on purpose"):
            self.assertIn(part, said.getvalue())

    def test_what_is_wrong_is_named(self):
        for keys, message in (({"slots": (0, 1)}, r"slots \(0, 1\): must be a number of replicas, or the fewest and the most"),
                              ({"slots": (3, 2)}, r"slots \(3, 2\): "),
                              ({"slots": "two"}, "slots 'two': "),
                              ({"trials": 3}, "trials=3: leave it out: start runs one trial"),
                              ({"command": ["true"]}, "command=.*: leave it out: start takes it as objective"),
                              ({"objective": "absent.py"}, "objective 'absent.py': there is no such script")):
            with self.subTest(keys), self.assertRaisesRegex(UsageError, message):
                testing.start(**{"objective": objectives.quadratic, **keys})
        with testing.start(objectives.quadratic, patience=3) as trial, self.assertRaisesRegex(UsageError, '"patience"'):
            trial.wait()
        with testing.start(objectives.quadratic) as trial, self.assertRaisesRegex(UsageError, "replicas 3: must be 1 to 2"):
            trial.resize(3)


if __name__ == "__main__":
    unittest.main()
