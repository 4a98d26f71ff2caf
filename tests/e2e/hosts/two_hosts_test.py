"""Two hosts, one slot each: an elastic trial grows over both, and nothing that trained is stopped for it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import unittest

from harness import BIN, LEASE_S, ROOT, replicas_of, wait_for
from hosts import HostsTest

PROFILE = ROOT / "examples/emulated/profile.json"
ENDLESS = 100_000  # epochs of a trial that the test ends


def environment_of(pid):
    words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


class TwoHosts(HostsTest):
    def serve_on(self, host, address=None):
        return super().serve_on(host, address, options=("--lease", LEASE_S))

    def submit(self):
        study = self.study([str(BIN / "emulated"), "--profile", str(PROFILE), "--epochs", str(ENDLESS),
                            "--samples", "2048"], trials=1, stragglers="ignore",
                           search_space={"lr": {"_type": "loguniform", "_value": [0.01, 1]}})
        self.client("submit", study)

    def replica_on(self, agent):
        return wait_for(lambda: len(p := replicas_of(agent.pid, "emulated")) == 1 and p[0], "a replica on each host")

    def grow_over_both(self, first, second):
        """The trial trains by the first agent, grows to the second, which is called to start it, and trains on until it is
        stopped; returns the environments of its two replicas."""
        self.submit()
        wait_for(lambda: (t := self.trial()) and t["values"], "the trial to train")
        agents = [first, second()]
        wait_for(lambda: self.trial()["resizes"], "the trial to grow")
        told = [environment_of(self.replica_on(agent)) for agent in agents]
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before + 1, "the trial to train on")
        stopped = [d for d in self.exported()["decisions"] if d["kind"] in ("shrink", "restart", "pause", "fail")]
        self.assertEqual(stopped, [])
        self.client("stop", "e2e")
        wait_for(lambda: self.trial()["state"] == "TRIAL_PAUSED", "the trial to leave")
        trial = self.trial()
        self.assertEqual(trial["restarts"], 0)
        self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, len(trial["values"]) + 1)))
        grown = trial["resizes"][0]
        self.assertEqual((grown["from_replicas"], grown["to_replicas"]), (1, 2))
        self.assertGreater(grown["pause_s"], 0)
        self.assertEqual([r for r in trial["resizes"] if r["after_loss"]], [])
        logs = sorted(self.dir.glob("host*/agent/e2e/trial-0/replica-*.log"))
        self.assertEqual(len(logs), 2, "one process on each host, and none started again")
        return told

    def test_addresses_are_those_that_reach_the_service(self):
        one, two = self.make_network(2)
        self.serve_on(one)
        told = self.grow_over_both(self.agent_on(one), lambda: self.agent_on(two))
        self.assertEqual([t["ESPALIER_HOST_ADDRESS"] for t in told], [one.ip4, two.ip4])
        self.assertEqual({t["ESPALIER_INTERFACE"] for t in told}, {"eth0"})

    def test_ipv6(self):
        one, two = self.make_network(2)
        self.serve_on(one, one.ip6)
        told = self.grow_over_both(self.agent_on(one), lambda: self.agent_on(two))
        self.assertEqual([t["ESPALIER_HOST_ADDRESS"] for t in told], [one.ip6, two.ip6])

    def test_network_of_the_users_choice(self):
        one, two = self.make_network(2, networks=2)
        self.serve_on(one)
        told = self.grow_over_both(self.agent_on(one, options=("--interface", "eth1")),
                                   lambda: self.agent_on(two, options=("--address", two.other_ip4)))
        self.assertEqual([t["ESPALIER_HOST_ADDRESS"] for t in told], [one.other_ip4, two.other_ip4])
        self.assertEqual({t["ESPALIER_INTERFACE"] for t in told}, {"eth1"})

    def test_firewall_with_a_port_range(self):
        one, two = self.make_network(2)
        ports = "7100-7107"
        one.firewall(hosts.PORT, ports)
        two.firewall(ports)
        self.serve_on(one)
        agent = lambda host: self.agent_on(host, options=("--port-range", ports))
        self.grow_over_both(agent(one), lambda: agent(two))
        # Not even tried in vain: nothing has run into either firewall.
        for host in (one, two):
            self.assertRegex(host.run("nft", "list", "table", "inet", "faults"), r"counter packets 0 bytes 0 drop")


if __name__ == "__main__":
    unittest.main()
