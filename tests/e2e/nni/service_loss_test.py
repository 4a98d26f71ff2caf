#!/usr/bin/env python3
"""A service that restarts is not noticed; one that is gone is reported within ten seconds, and nothing of it runs on."""
import environment

environment.run_inside(__file__)

import re
import signal
import time
import unittest

from harness import PATIENCE_S, wait_for
from nni_harness import NniTest, alive

SAID_WITHIN_S = 10
AWAY_S = 0.5  # for which a manager that is awake asks a service in vain


def silence_s(error):
    """How long the service had been silent when the manager gave it up, by its own clock (patient_manager.js): what a busy
    machine takes is not the manager's affair."""
    return int(re.search(r"has not answered for (\d+) s", error)[1])


class ServiceLossTest(NniTest):
    def running(self, **fields):
        experiment = self.experiment(variables={"STEPS": 12, "GATE": self.dir / "gate"}, **fields)
        self.start_experiment(experiment)
        wait_for(lambda: len([trial for trial in self.trials(experiment) if self.metrics(experiment, trial)]) == 2,
                 "two trials that have reported")
        return experiment

    def test_a_restart_is_not_noticed_and_a_death_is_reported(self):
        service = self.pool(2)
        experiment = self.running(max_trial_number=4)
        first = sorted(self.trials(experiment))
        manager = self.managers[-1]
        service.kill()
        service.wait()
        time.sleep(AWAY_S)
        manager.suspend()  # its clock too: a busy machine may take longer to start a service than the manager waits
        service = self.serve(self.dir / "espalier.db", grpc=self.grpc, http=self.http, options=["--lease", 60])
        manager.resume()
        (self.dir / "gate").touch()
        wait_for(lambda: len(self.trials(experiment)) == 4, "trials after the restart")
        self.wait_done(experiment)
        for trial in first:
            self.assertEqual(len(self.starts(trial)), 1, "a trial was started again because the service was")
        for trial in self.trials(experiment):
            self.assertEqual([sequence for sequence, _ in self.metrics(experiment, trial)], list(range(12)))
            self.assertEqual(len(self.metrics(experiment, trial, "FINAL")), 1)

        (self.dir / "gate").unlink()
        self.rest(experiment, "experiment?update_type=MAX_TRIAL_NUM", "PUT", {"params": {"maxTrialNumber": 6}})
        self.rest(experiment, "trial-jobs", "POST", {"x": 0.5})
        running = lambda: [pid for trial in self.trials(experiment) for pid, _ in self.starts(trial) if alive(pid)]
        pids = wait_for(running, "another trial that runs")
        service.kill()
        errors = self.wait_error(experiment)
        self.assertLess(silence_s(errors[0]), SAID_WITHIN_S)
        self.assertIn("nnictl resume", errors[0])
        # The agent's processes are the agent's, and end with it.
        self.agent_process.send_signal(signal.SIGTERM)
        self.agent_process.wait(timeout=PATIENCE_S)
        wait_for(lambda: not any(map(alive, pids)), "the trials' processes to end")

    def test_a_service_that_hangs_is_reported_too(self):
        service = self.pool(2)
        experiment = self.running()
        service.send_signal(signal.SIGSTOP)
        self.assertLess(silence_s(self.wait_error(experiment)[0]), SAID_WITHIN_S)


if __name__ == "__main__":
    unittest.main(verbosity=2)
