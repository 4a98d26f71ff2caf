"""`tuner serve --engine slurm` on a real Slurm: nodes are jobs that come with a study and go with it, whatever happens to
the controller, the jobs and the service."""
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cluster import Cluster
from harness import LEASE_S, EngineTest, kill, processes, wait_for

NODES = 4


class Slurm(EngineTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(NODES)
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        super().setUp()
        self.grpc, self.http = self.held_address(), self.held_address()

    def tearDown(self):
        for process in self.processes:  # the service first: it would start others
            if process.poll() is None:
                process.kill()
        if not self.cluster.controller_lives():
            self.cluster.start_controller()
        wait_for(lambda: not self.cluster.jobs("PENDING,CONFIGURING,RUNNING") or self.cluster.cancel(), "no jobs")
        for pid, _, words in processes():
            if "agent" in words and str(self.dir) in " ".join(words):
                kill(pid)
        wait_for(lambda: not self.cluster.jobs(), "the jobs to end")
        super().tearDown()

    def serve_slurm(self, *options, env=None, gres="gpu:2", node_lease=3):
        # What a user has set for lists of his own does not hide the engine's jobs, nor keep them from being ended.
        env = {"SQUEUE_PARTITION": "none", "SCANCEL_STATE": "PENDING", **(env or self.cluster.env)}
        # All of a node's GPUs: one job on each.
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "pool.db", "--lease",
                             node_lease, "--engine", "slurm", "--max-nodes", NODES, "--engine-option", f"gres={gres}",
                             "--engine-option", "notice_s=4", "--node-start", "2", "--node-dir", self.dir / "nodes",
                             *options, env=env)
        self.wait_service(service)
        return service

    def exactly(self, nodes):
        """Whether so many nodes are in the pool, and so many jobs in Slurm: neither lost nor doubled."""
        jobs = self.cluster.jobs()
        return len(self.nodes()) == nodes == len(jobs) == len({job[3] for job in jobs})

    def check_steps(self, steps, trials):
        record = self.export("--service", self.grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * trials)
        for trial in record["trials"]:
            self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, steps + 1)))
            self.assertEqual(self.taken(trial["number"]), list(range(1, steps + 1)), "no step twice")

    def complete(self):
        return self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE"

    def test_nodes_come_with_a_study_are_preempted_and_go_with_it(self):
        service = self.serve_slurm(node_lease=LEASE_S)
        self.submit(steps=12, trials=6, also=self.until_go())
        wait_for(lambda: self.exactly(NODES), "a job and a node on each of Slurm's nodes")
        self.assertEqual(sorted(job[2] for job in self.cluster.jobs()), ["n1", "n2", "n3", "n4"])
        high = self.cluster.preempt(seconds=600)
        wait_for(lambda: "RUNNING" in self.cluster.run("squeue", "-h", "-j", high, "-o", "%T"), "the one that preempts")
        self.assertLess(len(self.cluster.jobs("RUNNING")), NODES)
        self.cluster.run("scancel", high)
        self.go()
        wait_for(self.complete, "the study to end")
        self.check_steps(steps=12, trials=6)
        wait_for(lambda: not self.cluster.jobs() and not self.nodes(), "the pool to shrink to nothing")
        self.assertNotIn("event=engine_trouble ", self.output(service))
        service.terminate()
        self.finish(service)

    def test_lost_requests_and_a_killed_service_end_in_exactly_what_is_wanted(self):
        service = self.serve_slurm()
        self.submit(steps=10_000, trials=NODES)
        # Acknowledged, and not saved yet by the controller.
        wait_for(lambda: self.output(service).count("event=machine_requested") >= 2, "requests")
        self.cluster.kill_controller()
        wait_for(lambda: "nothing is started or ended" in " ".join(self.pool().get("warnings", [])), "the warning")
        self.cluster.start_controller()
        wait_for(lambda: self.exactly(NODES), "exactly what is wanted, after the loss of the controller")
        wait_for(lambda: not self.pool().get("warnings"), "the warning to go")
        # One goes, and the service dies while the next is requested.
        first = self.cluster.jobs()[0]
        self.cluster.run("scancel", first[0])
        wait_for(lambda: any(job[3] not in (first[3],) and job[1] in ("PENDING", "CONFIGURING")
                             for job in self.cluster.jobs()) or self.exactly(NODES), "the next request")
        service.kill()
        service.wait()
        agents = len(self.cluster.jobs())
        self.assertGreaterEqual(agents, NODES - 1, "jobs live on without the service")
        service = self.serve_slurm()
        wait_for(lambda: self.exactly(NODES), "exactly what is wanted, after the loss of the service")
        service.terminate()  # trials leave with a checkpoint, and no job is left
        self.finish(service)
        self.assertEqual(self.cluster.jobs("PENDING,CONFIGURING,RUNNING"), [])

    def test_what_is_wrong_is_told_once_and_trials_go_on(self):
        no_sbatch = self.dir / "bin"
        no_sbatch.mkdir()
        (no_sbatch / "squeue").symlink_to("/usr/bin/squeue")
        path = f"{no_sbatch}:/bin" if not pathlib.Path("/bin/sbatch").exists() else str(no_sbatch)
        for options, env, expected in (
                (("--engine-option", "partition=nowhere"), {}, "nvalid partition"),
                (("--engine-option", "memory=1000000"), {}, "configuration is not available"),
                ((), {"PATH": path}, '.sbatch. cannot be started')):
            with self.subTest(expected):
                service = self.serve_slurm("--min-nodes", "1", *options, env=self.cluster.env | env)
                agent = self.agent(1, "mine")
                self.submit(steps=3, trials=3, pause=0.1)
                wait_for(lambda: re.search(expected, " ".join(self.pool().get("warnings", []))), "the warning")
                told = self.run_tuner("pool", "--service", self.grpc).stdout
                self.assertRegex(told, expected)
                wait_for(self.complete, "the study to end on the node that there is")
                lines = [line for line in self.output(service).splitlines() if "event=engine_trouble " in line]
                self.assertEqual(len([line for line in lines if re.search(expected, line)]), 1, lines)
                agent.terminate()
                agent.wait()
                service.terminate()
                self.finish(service)
                (self.dir / "pool.db").unlink()
                shutil.rmtree(self.dir / "steps")  # of this study's trials


if __name__ == "__main__":
    unittest.main()
