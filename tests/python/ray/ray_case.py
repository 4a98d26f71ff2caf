"""What the tests on a Ray cluster share. Imports Ray: after cluster.prepare."""
import os
import subprocess
import sys

import ray
from harness import TunerTest, processes, wait_for, without_forks

import cluster

NODES = 2


class RayTest(TunerTest):
    """A cluster for all tests of a class, whose actors and agents are gone after each of them."""

    dashboard = False

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.RayCluster(NODES, cls.dashboard)
        cls.addClassCleanup(cls.cluster.close)
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="ERROR")
        cls.addClassCleanup(ray.shutdown)

    def tearDown(self):
        super().tearDown()
        for name in self.actors():
            ray.kill(ray.get_actor(name["name"], name["namespace"]))
        wait_for(lambda: not self.agents(), "no agent to outlive its actor")

    def actors(self):
        return [actor for actor in ray.util.list_named_actors(all_namespaces=True)
                if actor["name"].startswith("espalier.")]

    def agents(self):
        """{pid: arguments} of those that run."""
        found = {pid: (parent, words) for pid, parent, words in processes() if words[1:2] == ["agent"] and "--join" in words}
        return {pid: found[pid][1] for pid in without_forks({pid: parent for pid, (parent, _) in found.items()})}

    def command(self, *words, env=None):
        path = self.dir / f"out-{len(self.processes)}.txt"
        with open(path, "w") as out:
            process = subprocess.Popen([*map(str, words)], cwd=self.dir, stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=os.environ | (env or {}))
        process.out = path
        self.processes.append(process)
        return process

    def python(self, module, *arguments, env=None):
        return self.command(sys.executable, "-m", module, *arguments, env=env)
