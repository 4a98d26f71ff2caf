"""What the tests of integrations look at: a trial on two slots that loses the first of its two replicas."""
from harness import TunerTest, kill, replicas_of, wait_for

ENDED = ("TRIAL_COMPLETE", "TRIAL_FAIL")


class TwoReplicas(TunerTest):
    """One study, e2e, of one trial."""

    def trial(self):
        return next(iter(self.export("--service", self.grpc)["trials"]), {"resizes": [], "values": [], "state": ""})

    def resized(self, to, after_loss):
        trial = self.trial()
        self.assertNotIn(trial["state"], ENDED, self.logs())
        return any(r["to_replicas"] == to and r["after_loss"] == after_loss for r in trial["resizes"])

    def await_two(self):
        wait_for(lambda: self.trial()["state"] == "TRIAL_RUNNING", "the trial to start")
        # A busy machine looks like no place for two.
        self.run_tuner("pin", "e2e", 0, "--slots", 2, "--service", self.grpc)
        wait_for(lambda: self.resized(2, False), "the trial to grow")

    def lose_the_elder(self, agent, program):
        self.assertTrue(kill(replicas_of(agent.pid, str(program))[0]))
        wait_for(lambda: self.resized(1, True), "the other to go on alone")

    def await_end(self):
        """The trial, which has completed without a restart."""
        wait_for(lambda: self.trial()["state"] in ENDED, "its end")
        done = self.trial()
        self.assertEqual(done["state"], "TRIAL_COMPLETE", self.logs())
        self.assertEqual(done["restarts"], 0, f"{done}\n{self.logs()}")
        return done

    def logs(self):
        return "\n".join(p.read_text() for p in self.dir.rglob("replica-*.log"))
