"""One trial's ranks on two hosts: where they meet, which one is to blame, and that all end together. No torch."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import unittest

from harness import LEASE_S, RanksTest, is_alive, wait_for
from hosts import HostsTest

PORTS = "7100-7115"
# Each rank writes down what it is. Rank 0 meets the others where they are told to, and hears when one is gone.
BEGIN = """import os, pathlib, signal, socket, subprocess, sys, time
folder, case, trial = pathlib.Path(sys.argv[1]), sys.argv[2], os.environ["ESPALIER_TRIAL_NUMBER"]
rank, size = (int(os.environ[a] if a in os.environ else os.environ[b])
              for a, b in (("RANK", "NODE_RANK"), ("WORLD_SIZE", "NNODES")))
note = lambda name, text: (folder / f"{trial}-{rank}-{name}").open("a").write(f"{text}\\n")
note("pid", os.getpid())
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    listener = socket.create_server(place)
    others = [listener.accept()[0] for _ in range(size - 1)]
    for other in others:
        other.sendall(b"go")
else:
    while True:
        try:
            others = [socket.create_connection(place)]
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    others[0].recv(2)
"""
PLACES = BEGIN + """
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "NNODES", "ESPALIER_SLOTS", "MASTER_ADDR",
         "MASTER_PORT", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
note("place", " ".join(os.environ.get(name, "-") for name in names))
print(f"rank {rank} loss=0.{5 + rank}", flush=True)
"""
# Rank 0 fails for the loss of another one, and its host takes its time to end.
ENDS = BEGIN + """
if rank == 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
if rank != 3:
    others[0].recv(1)
    sys.exit("connection closed by peer")
print("loading the data", flush=True)
if case == "raises":
    raise ValueError("the reason of rank 3")
os.kill(os.getpid(), signal.SIGKILL)
"""
# A rank of the other host, and all of it, leaves with 0 before its time, for which one here fails.
LEAVES = BEGIN + """
import select
if rank == 3 or case == "all" and rank == 2:
    note("left", "")
    os._exit(0)
if rank > 0:
    time.sleep(1000)
for gone in (2, 3) if case == "all" else (3,):
    while not (folder / f"{trial}-{gone}-left").exists():
        time.sleep(0.01)
    while pathlib.Path("/proc", (folder / f"{trial}-{gone}-pid").read_text().strip()).exists():
        time.sleep(0.01)
select.select(others, [], [])
print("rank 3 is not there", flush=True)
sys.exit(5)
"""
STAYS = BEGIN + """
def ends(*_):
    note("term", "SIGTERM")
    if case == "heeds":
        sys.exit(0)
signal.signal(signal.SIGTERM, ends)
note("pid", subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid)
note("runs", "")
while not (folder / "go").exists():
    time.sleep(0.05)
"""


class RanksOnTwoHosts(RanksTest, HostsTest):
    RANKS = 4

    def begin(self, hosts_=2, lease_s=LEASE_S):
        """A service, and agents with two slots each on the first two hosts."""
        self.one, self.two, *self.more = self.make_network(hosts_)
        self.serve_on(self.one, options=("--lease", lease_s))
        self.agents = []
        for host in (self.one, self.two):  # in this order, which is that of their ranks
            self.agents.append(self.agent_on(host, slots=2, options=("--port-range", PORTS)))
            wait_for(lambda: host.name in self.client("pool").stdout, "the agent to join")

    def submit(self, program, cases, **keys):
        command = ["python3", self.write("ranks.py", program), str(self.notes), "{case}"]
        space = {"case": {"_type": "choice", "_value": cases}}
        self.client("submit", self.study(command, **{"launch": "ranks", "slots": 4, "sampler": "grid", "trials": None,
                                                     "metric": False, "search_space": space, **keys}))

    def ended(self, index=0):
        return wait_for(lambda: (t := self.trial(index)) and t["state"] in ("TRIAL_COMPLETE", "TRIAL_FAIL") and t, "the trial to end")

    def running(self, ranks=range(4)):
        wait_for(lambda: all(self.note(0, rank, "runs") for rank in ranks), "all ranks to run")

    def test_ranks_know_their_places_and_meet(self):
        self.begin()
        self.submit(PLACES, ["one"], metric={"name": "loss", "from_output": "loss=([0-9.]+)"})
        trial = self.ended()
        self.assertEqual((trial["state"], trial["value"]), ("TRIAL_COMPLETE", 0.5), "rank 0's value")
        places = [self.note(0, rank, "place")[0].split() for rank in range(4)]
        for rank, place in enumerate(places):
            node = rank // 2
            self.assertEqual(place[:8], [str(rank), str(rank % 2), "4", "2", str(node), str(node), "2", "2"])
            self.assertEqual(place[8:], [self.one.ip4, places[0][9], "eth0", "eth0"])
        self.assertIn(int(places[0][9]), range(7100, 7116), "of the range of the agent with rank 0")
        for rank in (0, 3):
            self.assertIn(f"rank {rank} loss=0.{5 + rank}\n", self.client("logs", "e2e", 0, "--rank", rank).stdout)
        shown = self.client("show", "e2e", "--trial", 0).stdout
        for host in (self.one, self.two):
            self.assertIn(host.name, shown)

    def test_one_process_a_node(self):
        self.begin()
        self.submit(PLACES, ["one"], launch="nodes")
        self.assertEqual(self.ended()["state"], "TRIAL_COMPLETE")
        for node in range(2):
            place = self.note(0, node, "place")[0].split()
            self.assertEqual(place[:9], ["-", "-", "-", "-", "-", str(node), "2", "2", self.one.ip4])
        self.assertIn("rank 1 loss=0.6\n", self.client("logs", "e2e", 0, "--rank", 1).stdout)

    def test_what_fits_on_one_host_is_on_one(self):
        self.begin()
        self.submit(PLACES, ["one", "other"], slots=2)
        for index in range(2):
            self.assertEqual(self.ended(index)["state"], "TRIAL_COMPLETE")
            self.assertEqual(self.note(index, 0, "place")[0].split()[8], "127.0.0.1")

    def test_the_rank_that_failed_is_the_reason(self):
        self.begin()
        self.submit(ENDS, ["raises", "killed"], stop_grace_s=0.5, max_consecutive_failures=9)
        for index, how in ((0, "exited with code 1"), (1, "was killed by signal 9")):
            trial = self.ended(index)
            self.assertEqual(trial["reason"], f"rank 3 of 4 on host2 {how}")
            self.assertIn("loading the data", trial["last_output"])
            self.assertNotIn("connection closed", trial["last_output"])
            self.expect_nothing_left(index)

    def test_the_reason_names_the_rank_of_the_other_host_that_had_left_with_0(self):
        self.begin()
        self.submit(LEAVES, ["one", "all"], stop_grace_s=0.5, max_consecutive_failures=9)
        for index, left in ((0, "3"), (1, "[23]")):
            trial = self.ended(index)
            self.assertRegex(trial["reason"], rf"^rank 0 of 4 on host1 exited with code 5 after rank {left} had ended with 0$")
            self.assertIn("rank 3 is not there", trial["last_output"])
            self.expect_nothing_left(index)

    def test_each_rank_is_told_once_to_end_and_killed_after_the_grace(self):
        self.begin()
        self.submit(STAYS, ["stays"], stop_grace_s=0.5)
        self.running()
        self.client("stop", "e2e")
        self.expect_nothing_left(0)
        for rank in range(4):
            self.assertEqual(self.note(0, rank, "term"), ["SIGTERM"])

    def test_a_host_that_is_lost_ends_the_rest_and_it_starts_again_on_what_is_there(self):
        self.begin(3, lease_s=3)
        self.submit(STAYS, ["heeds"])
        self.running()
        first = self.pids(0)
        os.kill(self.agents[1].pid, signal.SIGKILL)
        wait_for(lambda: not any(map(is_alive, first)), "what runs on either host to end")
        for rank in range(4):
            (self.notes / f"0-{rank}-runs").unlink()
        self.agent_on(self.more[0], slots=2)
        self.running()
        (self.notes / "go").touch()
        trial = self.ended()
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([d["kind"] for d in self.exported()["decisions"] if d["kind"] in ("restart", "fail")], [])

    def test_a_host_that_is_cut_off_ends_its_ranks_by_its_lease(self):
        self.begin(lease_s=3)
        self.submit(STAYS, ["stays"], stop_grace_s=0.5)
        self.running()
        self.two.cut(self.one)
        self.expect_nothing_left(0)
        self.two.mend()
        wait_for(lambda: len(self.pids(0)) == 16, "all ranks to run again")
        self.assertEqual(self.trial()["restarts"], 0)
        self.client("stop", "e2e")
        self.expect_nothing_left(0)


if __name__ == "__main__":
    unittest.main()
