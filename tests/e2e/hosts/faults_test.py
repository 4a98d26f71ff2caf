"""Nodes that cannot talk: who trains goes on, who cannot be reached leaves, and the two are not paired again.

The service has a host of its own: what is cut here are two agents from one another, not from it.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import unittest

from harness import BIN, LEASE_S, ROOT, wait_for
from hosts import HostsTest

PROFILE = ROOT / "examples/emulated/profile.json"


class Faults(HostsTest):
    def make_hosts(self):
        service, self.home, self.away = self.make_network(3)
        self.serve_on(service, options=("--lease", LEASE_S))

    def train(self, **keys):
        study = self.study([str(BIN / "emulated"), "--profile", str(PROFILE), "--epochs", "1000",
                            "--samples", "4096"], trials=1, stragglers="ignore",
                           search_space={"lr": {"_type": "loguniform", "_value": [0.01, 1]}}, **keys)
        self.client("submit", study)
        wait_for(lambda: self.values() > 0, "the trial to train")

    def start_pool(self):
        """An elastic trial that trains on host `self.home`, and a host whose agent is not there yet."""
        self.make_hosts()
        self.agent_on(self.home)
        self.train()

    def values(self):
        trial = self.trial()
        return len(trial["values"]) if trial else 0

    def reasons(self):
        return [d["reason"] for d in self.exported()["decisions"]]

    def expect_that_who_trains_goes_on(self, error):
        (told,) = wait_for(lambda: [r for r in self.reasons() if "cannot reach" in r], "the fault to be told")
        before = self.values()
        self.assertRegex(told, error)
        wait_for(lambda: self.values() > before + 1, "the trial to train on")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"], trial["slots"]), ("TRIAL_RUNNING", 0, 1))
        self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, len(trial["values"]) + 1)))
        self.assertFalse([r for r in self.reasons() if "hang" in r or "killed" in r])
        self.assertRegex(self.client("pool").stdout, rf"cannot reach .* at [0-9.]+:\d+: {error}")

    def test_a_joiner_that_is_refused_leaves(self):
        self.start_pool()
        self.home.refuse(self.away)
        self.agent_on(self.away)
        self.expect_that_who_trains_goes_on("Connection refused|Connection reset")
        self.assertIn(f"{self.away.name} cannot reach {self.home.name}", self.client("pool").stdout)

    def test_a_joiner_that_hears_nothing_leaves(self):
        self.start_pool()
        self.home.cut(self.away)
        self.agent_on(self.away)
        self.expect_that_who_trains_goes_on("no answer within 2 s")

    def test_a_joiner_that_lets_nobody_in_joins_where_it_may_dial(self):
        # A joiner has the higher rank: it dials, and nobody dials it.
        self.start_pool()
        self.away.shut(self.home)
        self.agent_on(self.away)
        wait_for(lambda: any(r["to_replicas"] == 2 for r in self.trial()["resizes"]), "the trial to grow")
        before = self.values()
        wait_for(lambda: self.values() > before + 1, "the trial to train on")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"], trial["slots"]), ("TRIAL_RUNNING", 0, 2))
        self.assertFalse([r for r in self.reasons() if "cannot reach" in r or "hang" in r or "killed" in r])

    def test_a_way_that_is_lost_in_one_direction(self):
        self.start_pool()
        self.away.deafen(self.home)
        self.agent_on(self.away)
        self.expect_that_who_trains_goes_on("no answer within 2 s")

    def test_a_group_that_is_cut_goes_on_with_one_part(self):
        self.start_pool()
        self.agent_on(self.away)
        wait_for(lambda: self.trial()["resizes"], "the trial to grow")
        self.home.cut(self.away)
        self.expect_that_who_trains_goes_on("no answer within 2 s")

    def test_a_trial_that_needs_both_waits_until_they_can_talk(self):
        self.make_hosts()
        self.agent_on(self.home)
        away = self.agent_on(self.away)
        self.train(slots={"min": 2, "max": 2})
        self.away.deafen(self.home)
        wait_for(lambda: self.trial()["state"] == "TRIAL_PAUSED", "the trial to pause")
        self.assertTrue([r for r in self.reasons() if "has fewer than its minimum of 2" in r], self.reasons())
        self.assertIn("cannot reach", self.client("pool").stdout)
        self.away.mend()
        away.terminate()
        self.finish(away)
        self.agent_on(self.away)  # whose Hello says that it may be tried again
        before = self.values()
        wait_for(lambda: self.values() > before + 1, "the trial to train on")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"], trial["slots"]), ("TRIAL_RUNNING", 0, 2))


if __name__ == "__main__":
    unittest.main()
