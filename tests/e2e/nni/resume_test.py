#!/usr/bin/env python3
"""Experiments that are stopped, killed, viewed and taken up again, by NNI's own commands."""
import environment

environment.run_inside(__file__)

import unittest

from harness import PATIENCE_S, wait_for
from nni_harness import NniTest, alive, end_tree, manager_of
from ports import two_free_ports

STEPS = 30


class ResumeTest(NniTest):
    def resumed(self, experiment):
        """By nnictl, which starts a manager that outlives it."""
        def resume():
            port = two_free_ports()
            output = self.nnictl("resume", experiment.id, "--port", port)
            if "Traceback" in output or self.manager(experiment) is None:
                return None
            experiment.port = port
            return experiment
        return wait_for(resume, "nnictl resume")

    def manager(self, experiment):
        return manager_of(experiment.id, self.known_experiments()[experiment.id].get("pid"))

    def check_whole(self, experiment, trial):
        """Each metric once, in spite of everything."""
        self.assertEqual([sequence for sequence, _ in self.metrics(experiment, trial)], list(range(STEPS)))
        self.assertEqual(len(self.metrics(experiment, trial, "FINAL")), 1)

    def test_stop_view_and_resume_go_on_from_checkpoints(self):
        self.pool(2)
        gate = self.dir / "gate"
        experiment = self.experiment(variables={"STEPS": STEPS, "GATE": gate}, max_trial_number=4,
                                     checkpoint_directory=str(self.dir / "checkpoints"))
        self.start_experiment(experiment)
        wait_for(lambda: len([trial for trial in self.trials(experiment) if self.metrics(experiment, trial)]) == 2,
                 "two trials that have reported")
        before = self.trials(experiment)
        pids = [self.starts(trial)[0][0] for trial in before]
        manager = experiment._proc
        self.nnictl("stop", experiment.id)
        manager.wait(timeout=PATIENCE_S)
        wait_for(lambda: not any(map(alive, pids)), "the trials' processes to end")

        port = two_free_ports()
        self.nnictl("view", experiment.id, "--port", port)
        wait_for(lambda: self.rest(port, "check-status")["status"] == "VIEWED", "the view")
        self.assertEqual({trial["trialJobId"] for trial in self.rest(port, "trial-jobs")}, set(before))
        self.assertIn("step 0", self.rest(port, f"trial-file/{next(iter(before))}/stdout"))
        end_tree(self.manager(experiment))
        self.assertEqual([len(self.starts(trial)) for trial in before], [1, 1], "a view has started trials")

        gate.touch()
        self.resumed(experiment)
        self.wait_done(experiment)
        after = self.trials(experiment)
        self.assertEqual(len(after), 4)
        self.assertLessEqual(set(before), set(after))
        for trial in before:
            self.assertGreater(self.starts(trial)[1][1], 0, "a resumed trial began anew")
        for trial in after:
            self.assertEqual(after[trial]["status"], "SUCCEEDED")
            self.check_whole(experiment, trial)

    def test_what_ended_while_nni_was_away_is_not_run_again(self):
        self.pool(2)
        gate = self.dir / "gate"
        experiment = self.experiment(variables={"STEPS": STEPS, "GATE": gate})
        self.start_experiment(experiment)
        wait_for(lambda: len([trial for trial in self.trials(experiment) if self.metrics(experiment, trial)]) == 2,
                 "two trials that have reported")
        trials = sorted(self.trials(experiment))
        pids = [self.starts(trial)[0][0] for trial in trials]
        end_tree(self.managers[-1])
        gate.touch()
        wait_for(lambda: not any(map(alive, pids)), "the trials to end while NNI is away")
        self.resumed(experiment)
        self.wait_done(experiment)
        self.assertEqual(sorted(self.trials(experiment)), trials)
        self.assertEqual(self.states(experiment), ["SUCCEEDED", "SUCCEEDED"])
        for trial in trials:
            self.assertEqual(len(self.starts(trial)), 1, "a trial that had ended has run again")
            self.check_whole(experiment, trial)


if __name__ == "__main__":
    unittest.main(verbosity=2)
