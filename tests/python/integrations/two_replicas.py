"""What the tests of integrations look at: a trial on two slots that loses the first of its two replicas."""
from harness import LONG_S, SharedPoolTest, kill, replicas_of, wait_for

ENDED = ("TRIAL_COMPLETE", "TRIAL_FAIL")


class TwoReplicas(SharedPoolTest):
    """Each study has one trial."""

    def submit(self, command, space, **keys):
        study = self.study(command, trials=1, sampler="random", **keys,
                           search_space={name: {"_type": "choice", "_value": [value]} for name, value in space.items()})
        self.run_tuner("submit", study, "--service", self.grpc)

    def trial(self):
        return next(iter(self.export()["trials"]), {"resizes": [], "values": [], "state": ""})

    def losses(self):
        trial = self.trial()
        self.assertNotIn(trial["state"], ENDED, self.logs())
        return len([r for r in trial["resizes"] if r["after_loss"]])

    def lose_rank_0(self, program):
        """Again and again, if need be: another comes in the place of the lost one."""
        pair = wait_for(lambda: len(p := replicas_of(self.node.pid, str(program))) == 2
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
