"""Ranks on two hosts that train one model with PyTorch: by torchrun, by ourselves, and by a launcher that the command starts."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import hosts  # noqa: E402

hosts.run_inside(__file__)

import unittest  # noqa: E402

from harness import LEASE_S, wait_for  # noqa: E402
from hosts import HostsTest  # noqa: E402

PROGRAM = str(pathlib.Path(__file__).resolve().parent / "parallel_ranks.py")
TORCHRUN = ("exec \"$0\" -m torch.distributed.run --nnodes=$NNODES --node-rank=$NODE_RANK --nproc-per-node=$ESPALIER_SLOTS "
            "--master-addr=$MASTER_ADDR --master-port=$MASTER_PORT \"$@\"")


class LaunchOverHosts(HostsTest):
    def check(self, launch, start=(), trials=2):
        one, two = self.make_network(2)
        self.serve_on(one, options=("--lease", LEASE_S))
        for host, slots in ((one, 1), (two, 2)):
            self.agent_on(host, slots=slots)
            wait_for(lambda: host.name in self.client("pool").stdout, "the agent to join")
        study = self.study([*start, sys.executable, PROGRAM, "{trial}", "{x}"], launch=launch, slots=3,
                           trials=trials, search_space={"x": {"_type": "uniform", "_value": [0.01, 0.1]}}, stop_grace_s=1,
                           metric={"name": "loss", "from_output": "rank 0 of 3, step=(?P<step>[0-9]+) loss=(.*)"})
        self.client("submit", study)
        ended = lambda i: (t := self.trial(i)) and t["state"] in ("TRIAL_COMPLETE", "TRIAL_FAIL") and t
        return [wait_for(lambda: ended(i), f"trial {i} to end") for i in range(trials)]

    def check_both(self, launch):
        trained, failed = self.check(launch)
        self.assertEqual(trained["state"], "TRIAL_COMPLETE", trained)
        self.assertEqual([int(value["step"]) for value in trained["values"]], [1, 2, 3])
        self.assertIn("rank 2 of 3, step=3", self.client("logs", "e2e", 0, "--rank", 2).stdout)
        self.assertEqual(failed["reason"].split("\n")[0], "rank 2 of 3 on host2 exited with code 1")
        self.assertIn("ValueError: the last rank has read a bad sample", failed["last_output"])
        self.assertNotIn("onnection", failed["last_output"], "which are the others'")

    def test_ranks_of_our_own(self):
        self.check_both("ranks")

    def test_torchrun_with_unlike_numbers_of_ranks(self):
        self.check_both("torchrun")

    def test_a_launcher_that_the_command_starts_on_each_host(self):
        trained, = self.check("nodes", ("sh", "-c", TORCHRUN), trials=1)
        self.assertEqual([int(value["step"]) for value in trained["values"]], [1, 2, 3], trained)


if __name__ == "__main__":
    unittest.main()
