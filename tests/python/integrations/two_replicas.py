"""What the tests of integrations look at: a trial on two slots that loses the first of its two replicas."""
from harness import LONG_S, TunerTest, kill, replicas_of, wait_for

ENDED = ("TRIAL_COMPLETE", "TRIAL_FAIL")


class TwoReplicas(TunerTest):
    """One study, e2e, of one trial."""

    def trial(self):
        return next(iter(self.export("--service", self.grpc)["trials"]), {"resizes": [], "values": [], "state": ""})

    def losses(self):
        trial = self.trial()
        self.assertNotIn(trial["state"], ENDED, self.logs())
        return len([r for r in trial["resizes"] if r["after_loss"]])

    def await_two(self):
        self.grow_to_two("--service", self.grpc)

    def lose_rank_0(self, agent, program):
        """Again and again, if need be: another comes in the place of the lost one."""
        pair = wait_for(lambda: len(p := replicas_of(agent.pid, str(program))) == 2
                        and self.trial()["resizes"][-1]["to_replicas"] == 2 and p, "two replicas")
        before = self.losses()
        self.assertTrue(kill(pair[0]))
        wait_for(lambda: self.losses() > before or self.trial()["restarts"], "the other to go on alone")
        self.assertEqual(self.trial()["restarts"], 0, self.logs())

    def await_end(self):
        """The trial, which has completed without a restart."""
        wait_for(lambda: self.trial()["state"] in ENDED, "its end", LONG_S)
        done = self.trial()
        self.assertEqual(done["state"], "TRIAL_COMPLETE", self.logs())
        self.assertEqual(done["restarts"], 0, f"{done}\n{self.logs()}")
        return done

    def logs(self):
        return "\n".join(p.read_text() for p in self.dir.rglob("replica-*.log"))
