"""Checkpoints belong to the pool: hosts are lost with their disks, and trials go on elsewhere."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import unittest

from harness import ROOT, processes, replicas_of, wait_for
from hosts import HostsTest

PROGRAM = str(ROOT / "tests/e2e/elastic_program.py")
LEASE_S = 6  # of hosts, some of which are lost: a busy machine may keep one waiting that is not
MB = 1 << 20


class Checkpoints(HostsTest):
    def start_pool(self, epochs, seconds, size, every=1, last=0, nodes=2, apart=False, **keys):
        """The service on a host of its own, a trial of one slot, and hosts with one slot each, which can talk unless `apart`."""
        self.home, *self.nodes = self.make_network(1 + nodes, **keys)
        self.serve_on(self.home, options=("--lease", LEASE_S))
        self.agents = [self.agent_on(node) for node in self.nodes]
        wait_for(lambda: f"of {nodes} slots" in self.client("pool").stdout, "all agents")
        if apart:
            self.network.partition(*([node] for node in self.nodes))
        study = self.study([sys.executable, PROGRAM, str(epochs), str(seconds), str(size), str(every),
                            str(last or epochs)], trials=1,
                           slots={"min": 1, "max": 1})
        self.client("submit", study)

    def trial_folder(self, host):
        return host.folder / "agent/e2e/trial-0"

    def checkpoints(self, host):
        return sorted(self.trial_folder(host).glob("checkpoints/step-*.pt"), key=lambda p: int(p.stem[5:]))

    def log(self, host):
        return "".join(p.read_text() for p in sorted(self.trial_folder(host).glob("replica-*.log")))

    def runs_on(self):
        """Index of the host that the trial runs on."""
        return wait_for(lambda: next((i + 1 for i, n in enumerate(self.nodes) if "goes on" in self.log(n)), None),
                        "the trial to start") - 1

    def lose(self, index):
        """The host vanishes with agent, trial and disk."""
        host, agent = self.nodes[index], self.agents[index]
        host.cut(*(h for h in self.network.hosts if h is not host))
        trial = replicas_of(agent.pid, PROGRAM)
        agent.kill()
        agent.wait()
        wait_for(lambda: not [pid for pid, _, _ in processes() if pid in trial], "its trial to end")
        shutil.rmtree(host.folder / "agent")

    def copied(self, at_least=1):
        """Until two nodes have the newest checkpoint."""
        wait_for(lambda: (t := self.trial()) and len(t["checkpoint_nodes"]) == 2 and len(t["values"]) >= at_least,
                 "a second copy")

    def pause(self):
        """Until the trial is paused, and both copies of its newest checkpoint are there."""
        self.client("stop", "e2e")
        wait_for(lambda: self.trial()["state"] == "TRIAL_PAUSED", "the trial to pause")
        self.copied()

    def damage(self, host):
        """One bit of the newest checkpoint there; its name."""
        newest = self.checkpoints(host)[-1]
        data = bytearray(newest.read_bytes())
        data[len(data) // 3] ^= 1
        newest.write_bytes(data)
        return newest.name

    def reasons(self):
        return "\n".join(d["reason"] for d in self.exported()["decisions"])

    def test_a_host_is_lost_with_its_disk(self):
        self.start_pool(1000, 0.25, 1 * MB)
        home = self.runs_on()
        self.copied(at_least=5)
        # A newer one lies on one host for a moment.
        wait_for(lambda: re.search(r"stored on +host[23], host[23]",
                                   self.client("show", "e2e", "--trial", 0).stdout),
                 "a checkpoint that is shown to lie on two hosts")
        kept = int(self.checkpoints(self.nodes[1 - home])[-1].stem[5:])
        self.lose(home)
        other = self.nodes[1 - home]
        wait_for(lambda: "goes on from epoch" in self.log(other), "the trial to go on elsewhere")
        begun = int(re.search(r"goes on from epoch (\d+)", self.log(other))[1])
        self.assertGreaterEqual(begun, kept)
        wait_for(lambda: len(self.trial()["values"]) > begun + 1, "its next reports")
        self.client("stop", "e2e")
        wait_for(lambda: self.trial()["state"] != "TRIAL_RUNNING", "the trial to pause")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_PAUSED", 0), self.reasons())
        steps = [int(v["step"]) for v in trial["values"]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def test_a_trial_that_goes_on_elsewhere_fetches_its_checkpoint(self):
        self.start_pool(1000, 0.25, 1 * MB, nodes=3)
        self.runs_on()
        self.copied(at_least=3)
        self.client("stop", "e2e")
        wait_for(lambda: self.trial()["state"] == "TRIAL_PAUSED", "the trial to pause")
        self.copied(at_least=3)
        holders = self.trial()["checkpoint_nodes"]
        (third,) = (node for node in self.nodes if node.name not in holders)
        for name in holders:
            self.client("drain", name)
        self.client("resume", "e2e")
        wait_for(lambda: "goes on from epoch" in self.log(third), "the trial to go on there")
        self.assertNotIn("goes on from epoch 0", self.log(third))
        self.assertTrue(self.checkpoints(third))
        self.assertEqual(self.trial()["restarts"], 0)

    def test_a_damaged_copy_is_fetched_from_another_host(self):
        self.start_pool(1000, 0.2, 1 * MB)
        home = self.runs_on()
        host, other = self.nodes[home], self.nodes[1 - home]
        self.copied(at_least=3)
        self.pause()
        name = self.damage(host)
        self.client("drain", other.name)  # it still gives its copy away
        self.client("resume", "e2e")
        wait_for(lambda: self.log(host).count("goes on from epoch") == 2, "the trial to go on where it was")
        begun = re.findall(r"goes on from epoch (\d+)", self.log(host))
        self.assertEqual(int(begun[1]), int(name[5:-3]))
        self.assertEqual(self.trial()["restarts"], 0)
        aside = self.trial_folder(host) / "checkpoints" / f"{name}.damaged"
        self.assertTrue(aside.exists())
        self.assertRegex(self.output(self.agents[home]),
                         rf"checkpoint {name} of trial 0 in study e2e is damaged: its checksum is [0-9a-f]{{16}}, and "
                         rf"[0-9a-f]{{16}} was written down with it; set aside as {aside}")

    def test_a_checkpoint_of_which_every_copy_is_damaged(self):
        self.start_pool(1000, 0.2, 1 * MB)
        self.runs_on()
        self.copied(at_least=3)
        self.pause()
        (name,) = {self.damage(host) for host in self.nodes}
        self.client("resume", "e2e")
        wait_for(lambda: self.trial()["state"] == "TRIAL_FAIL", "the trial to fail")
        trial = self.trial()
        self.assertEqual(trial["restarts"], 0)
        self.assertRegex(
            trial["reason"],
            rf"^no node has its checkpoint {name} any more \(node (host\d): its own copy is damaged: .*; set aside as "
            rf".*/{name}.damaged; checkpoint {name} of trial 0 in study e2e cannot be fetched: .*"
            rf"node (?!\1)host\d at \S+: its copy is damaged: .*\), and no other node has one$")
        for host in self.nodes:
            self.assertLessEqual(self.log(host).count("goes on from epoch"), 1)

    def test_a_connection_that_breaks_in_mid_copy_resumes(self):
        size = 16 * MB
        self.start_pool(1000, 0.5, size, last=1, rate_mbit=20)
        home = self.runs_on()
        holder, other = self.nodes[home], self.nodes[1 - home]

        def incoming():
            return sum(p.stat().st_size for p in self.trial_folder(other).glob("incoming/*/*"))
        wait_for(lambda: incoming() > 4 * MB, "a part of the copy")
        other.cut(holder)
        wait_for(lambda: not other.run("ss", "-Htn", "state", "established", "dst", holder.ip4), "the break")
        before, received = incoming(), self.received(other)
        other.mend()
        wait_for(lambda: self.checkpoints(other), "the copy to be whole")
        self.assertLess(self.received(other) - received, size - before + 2 * MB, "what had come was not sent again")

    def received(self, host):
        """Bytes that have arrived at the host over its network."""
        for line in host.run("cat", "/proc/net/dev").splitlines():
            if line.strip().startswith("eth0:"):
                return int(line.split(":")[1].split()[0])
        raise AssertionError("no eth0")

    def test_the_only_checkpoint_is_lost(self):
        self.start_pool(1000, 0.3, 4096, apart=True)
        home = self.runs_on()
        host, other = self.nodes[home], self.nodes[1 - home]
        wait_for(lambda: (t := self.trial()) and len(t["values"]) >= 5, "some epochs")
        self.lose(home)
        waits = wait_for(lambda: re.search(r"waits for node (host\d), where its (checkpoint step-\d+\.pt) lies",
                                           self.reasons()), "a word of it")
        self.assertEqual(waits[1], host.name)
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_PAUSED", 0))
        self.assertRegex(self.client("show", "e2e", "--trial", 0).stdout, rf"stored on +{host.name}\n")
        # It comes back with an empty disk: now there is nobody to wait for.
        host.mend()
        self.agents[home] = self.agent_on(host)
        wait_for(lambda: self.trial()["state"] == "TRIAL_FAIL", "the trial to fail")
        trial = self.trial()
        self.assertEqual(trial["reason"], f"no node has its {waits[2]} any more, and no other node has one")
        self.assertEqual(trial["restarts"], 0)
        self.assertEqual(self.log(other) + self.log(host), "", "nothing was begun anew")

    def test_a_shared_folder(self):
        self.home, *self.nodes = self.make_network(3)
        self.serve_on(self.home, options=("--lease", LEASE_S))
        shared = self.dir / "shared"
        self.agents = [self.agent_on(n, options=("--shared-dir", shared)) for n in self.nodes]
        wait_for(lambda: "of 2 slots" in self.client("pool").stdout, "both agents")
        stranger = self.agent_on(self.home, options=("--shared-dir", self.home.folder / "own"))
        self.finish(stranger, 2)
        self.assertRegex(self.output(stranger), r"the --shared-dir of node host1 is not the folder of node host[23]")
        self.client("submit", self.study([sys.executable, PROGRAM, "1000", "0.2", "4096"], trials=1,
                                         slots={"min": 1, "max": 1}))
        home = self.runs_on()
        wait_for(lambda: (t := self.trial()) and t["checkpoint_nodes"] and len(t["values"]) >= 3, "a checkpoint")
        self.lose(home)
        wait_for(lambda: "goes on from epoch" in self.log(self.nodes[1 - home]), "the trial to go on elsewhere")
        self.assertNotIn("goes on from epoch 0", self.log(self.nodes[1 - home]))


if __name__ == "__main__":
    unittest.main()
