"""What the tests on a Ray cluster share. Imports Ray: after cluster.prepare."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import ray
from espalier import Client
from espalier.errors import EspalierError
from harness import TunerTest, processes, wait_for, without_forks

import cluster

NODES = 2
STACKS_S = 10  # for a process to write the stacks of its threads


class RayTest(TunerTest):
    """A cluster for all tests of a class, whose actors and agents are gone after each of them."""

    dashboard = False
    nodes_folder = None  # where a test knows it and it is not in the test's own

    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster.RayCluster(NODES, cls.dashboard)
        cls.addClassCleanup(cls.cluster.close)
        ray.init(address=cls.cluster.address, log_to_driver=False, logging_level="ERROR")
        cls.addClassCleanup(ray.shutdown)

    def tearDown(self):
        if self._has_failed():
            self.tell_where_they_stand()
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

    def tell_where_they_stand(self):
        """Before they are ended: services say what they know, programs in Python write the stacks of their threads to what
        they print, and the logs of nodes, trials and Ray are kept."""
        for log in self.dir.rglob("service.log"):
            print(f"\n==== {log}\n{log.read_text(errors='replace')}{self.known_to_the_service_of(log)}", file=sys.stderr)
        for process in self.processes:
            if process.poll() is None and process.args[0] == sys.executable:
                process.send_signal(signal.SIGABRT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STACKS_S)
        self._keep_logs(pathlib.Path(os.environ["RAY_TMPDIR"]))
        if self.nodes_folder is not None:
            self._keep_logs(self.nodes_folder)

    def known_to_the_service_of(self, log):
        address = re.search(r"^HTTP (\S+)\n", log.read_text(errors="replace"), re.MULTILINE)
        if not address:
            return "it does not listen"
        try:
            with Client(address[1], token_file=log.parent / "pool.db.credentials/administer.token") as service:
                return json.dumps(service.details("e2e", values=False), indent=1)
        except EspalierError as error:
            return str(error)

    def command(self, *words, env=None, cwd=None):
        path = self.dir / f"out-{len(self.processes)}.txt"
        with open(path, "w") as out:
            process = subprocess.Popen([*map(str, words)], cwd=cwd or self.dir, stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL,
                                       env=os.environ | {"PYTHONFAULTHANDLER": "1"} | (env or {}))
        process.out = path
        self.processes.append(process)
        return process

    def python(self, module, *arguments, env=None, cwd=None):
        return self.command(sys.executable, "-m", module, *arguments, env=env, cwd=cwd)
