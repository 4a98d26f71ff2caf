"""Scripts of Accelerate, DeepSpeed and Lightning as they are, on two hosts: their ranks train one model, and one that dies is
the reason. Hosts may have addresses of IPv6 alone."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import hosts  # noqa: E402

hosts.run_inside(__file__)

import unittest  # noqa: E402

from gang_case import GangCase  # noqa: E402
from harness import LEASE_S, LONG_S, is_alive, wait_for  # noqa: E402
from hosts import HostsTest  # noqa: E402


class GangsOverHosts(GangCase, HostsTest):
    def check(self, launch, script, ipv6=False, **variables):
        one, two = self.make_network(2)
        for host in (one, two) if ipv6 else ():
            host.run("ip", "-4", "address", "flush", "dev", "eth0")
        self.serve_on(one, one.ip6 if ipv6 else one.ip4, ("--lease", LEASE_S))
        for host in (one, two):  # in this order, which is that of their ranks
            self.agent_on(host)
            wait_for(lambda: host.name in self.client("pool").stdout, "the agent to join")
        notes = self.dir / "notes"
        notes.mkdir()
        self.client("submit", self.gang_study(launch, script, notes, **variables))
        self.assert_gang_trained(self.ended(0), notes)
        self.assert_rank_is_blamed(self.ended(1), two.name)
        pids = [int((notes / f"pid-{rank}").read_text()) for rank in range(2)]
        wait_for(lambda: not any(map(is_alive, pids)), "both to be gone")

    def ended(self, index):
        # DeepSpeed compiles when it first runs.
        return wait_for(lambda: (t := self.trial(index)) and t["state"] in ("TRIAL_COMPLETE", "TRIAL_FAIL") and t,
                        f"trial {index} to end", LONG_S)

    def test_accelerate(self):
        self.check("accelerate", "accelerate_ddp.py")

    def test_torchrun_where_there_is_ipv6_alone(self):
        self.check("torchrun", "ddp.py", ipv6=True)

    def test_deepspeed(self):
        self.check("deepspeed", "deepspeed_zero.py", DS_ACCELERATOR="cpu")

    def test_lightning(self):
        self.check("ranks", "lightning_ddp.py")


if __name__ == "__main__":
    unittest.main()
