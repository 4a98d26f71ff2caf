#!/usr/bin/env python3
"""Elastic trials in NNI's experiments: a program in C++ beside a script, and a script whose loop is elastic. They are
resized, and NNI sees one trial that runs."""
import environment

environment.run_inside(__file__)

import sys
import unittest

from harness import BIN, LONG_S, ROOT, kill, replicas_of, wait_for
from nni_harness import LIVE, TRIAL, NniTest

EPOCHS, SAMPLES = 8, 10_000  # ten seconds each on one slot: long enough for a second replica on a busy machine
PYTHON_EPOCHS = 30
TRAIN = ROOT / "examples/python_nni/train.py"
# NNI's interpreter has no torch: it finds that of the build behind its own packages.
FIND_TORCH = "import sys\nsys.path += [{torch!r}, {ours!r}]\n"


class ElasticTest(NniTest):
    def test_a_trial_is_resized_while_nni_sees_it_run(self):
        self.pool(2)
        gate = self.dir / "gate"
        program = (f"{BIN / 'emulated'} --profile {ROOT / 'examples/emulated/profile.json'} --epochs {EPOCHS} "
                   f"--samples {SAMPLES}")
        experiment = self.experiment(
            trial_command=f'if [ "$NNI_TRIAL_SEQ_ID" = 0 ]; then exec {program}; else exec {TRIAL}; fi',
            variables={"GATE": gate, "OMP_NUM_THREADS": 1}, maximize=True,
            space={"x": {"_type": "uniform", "_value": [0, 1]}, "lr": {"_type": "uniform", "_value": [0.01, 0.05]}})
        self.start_experiment(experiment)
        wait_for(lambda: len(self.trials(experiment)) == 2, "both trials")
        elastic, script = sorted(self.trials(experiment), key=lambda id: self.trials(experiment)[id]["sequenceId"])
        wait_for(lambda: self.metrics(experiment, elastic), "its first epoch, on one slot")
        seen = []

        def state():
            status = self.trials(experiment)[elastic]["status"]
            if not seen or seen[-1] != status:
                seen.append(status)
            return status

        # The script's end leaves its slot to the other. A busy machine looks like no place for two.
        self.run_tuner("pin", f"nni-{experiment.id}", 0, "--slots", 2, "--service", self.grpc)
        gate.touch()
        wait_for(lambda: state() not in LIVE, "the trial's end", LONG_S)
        self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["SUCCEEDED", "SUCCEEDED"])
        self.assertEqual(seen, ["RUNNING", "SUCCEEDED"])
        values = self.metrics(experiment, elastic)
        self.assertEqual([sequence for sequence, _ in values], list(range(EPOCHS)))
        self.assertEqual([value for _, value in self.metrics(experiment, elastic, "FINAL")], [values[-1][1]])
        self.assertEqual(len(self.metrics(experiment, script, "FINAL")), 1)

        trial = next(trial for trial in self.export("--service", self.grpc, study=f"nni-{experiment.id}")["trials"]
                     if trial["number"] in (0, "0"))
        self.assertIn((1, 2), [(resize["from_replicas"], resize["to_replicas"]) for resize in trial["resizes"]])
        self.assertEqual(trial["restarts"], 0)

    def test_each_replica_of_a_script_makes_nnis_calls(self):
        torch = next((ROOT / ".deps/venv/lib").glob("python3.*/site-packages"), None)
        if torch is None:
            self.skipTest("there is no .deps/venv with a torch for Python; see scripts/setup.sh")
        self.pool(2)
        seen = self.slow_losses(FIND_TORCH.format(torch=str(torch), ours=str(ROOT / "python")))
        experiment = self.experiment(
            trial_command=f"exec {sys.executable} {TRAIN} --epochs {PYTHON_EPOCHS} --samples 3000",
            variables={"OMP_NUM_THREADS": 1, "PYTHONPATH": self.dir,
                       "ESPALIER_TORCH_LIBRARY": BIN.parent / "lib/libespalier_torch.so"},
            maximize=True, max_trial_number=1,
            space={"lr": {"_type": "uniform", "_value": [0.01, 0.03]}, "width": {"_type": "choice", "_value": [8]},
                   "batch_size": {"_type": "choice", "_value": [100]}, "dropout": {"_type": "choice", "_value": [0.0]}})
        self.start_experiment(experiment)
        trial = wait_for(lambda: next(iter(self.trials(experiment)), None), "the trial")

        def replicas():
            self.assertIn(self.trials(experiment)[trial]["status"], LIVE, self.output(self.agent_process))
            return replicas_of(self.agent_process.pid, str(TRAIN))

        def resizes():
            (one,) = self.export("--service", self.grpc, study=f"nni-{experiment.id}")["trials"]
            return one["resizes"]

        wait_for(replicas, "the trial to start")
        self.grow_to_two("--service", self.grpc, study=f"nni-{experiment.id}")
        self.assertTrue(kill(replicas()[0]))  # rank 0, which sends the reports
        wait_for(lambda: any(resize["after_loss"] for resize in resizes()), "the other to go on alone")
        seen.touch()
        self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["SUCCEEDED"])
        values = self.metrics(experiment, trial)
        self.assertEqual([sequence for sequence, _ in values], list(range(PYTHON_EPOCHS)))
        self.assertEqual({frozenset(value) for _, value in values}, {frozenset(["default", "loss"])})
        self.assertGreater(values[-1][1]["default"], 0.5)
        self.assertEqual([value for _, value in self.metrics(experiment, trial, "FINAL")], [values[-1][1]["default"]])

    def test_what_is_no_number_is_named(self):
        sys.path.insert(0, str(ROOT / "python"))
        from espalier import UsageError, _nni_channel
        self.assertEqual(_nni_channel._figures({"default": 1, "loss": 0.5, "note": "fast"}), (1.0, {"loss": 0.5}))
        for value in ("high", {"loss": 0.5}, None):
            with self.assertRaisesRegex(UsageError, "default"):
                _nni_channel._figures(value)


if __name__ == "__main__":
    unittest.main(verbosity=2)
