"""`tuner serve --engine local`: nodes are processes that come with a study and go with it."""
import json
import os
import signal
import subprocess
import unittest
import urllib.request

from harness import TUNER, TunerTest, processes, wait_for


class PoolSize(TunerTest):
    def setUp(self):
        super().setUp()
        self.grpc = self.http = "127.0.0.1:0"
        (self.dir / "steps").mkdir()

    def tearDown(self):
        for pid in self.agents():
            os.kill(pid, signal.SIGKILL)
        super().tearDown()

    def serve_engine(self, *options):
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db",
                             self.dir / "pool.db", "--lease", "2", "--engine", "local",
                             "--node-start", "1", "--node-dir", self.dir / "nodes", *options)
        self.grpc, self.http = self.told_address(service, "gRPC"), self.told_address(service, "HTTP")
        self.wait_service(service)
        return service

    def submit(self, steps, trials, **keys):
        script = self.resumable_trial(steps, 0.2)
        self.run_tuner("submit", self.study([script], trials=trials, **keys), "--service", self.grpc)

    def nodes(self):
        with urllib.request.urlopen(f"http://{self.http}/api/pool") as answer:
            return json.load(answer).get("nodes", [])

    def agents(self):
        """Processes of nodes, by whose they are: their folder is on their command line. What an
        agent has forked has its command line too, until it runs its own program."""
        parents = {pid: parent for pid, parent, words in processes()
                   if "agent" in words and str(self.dir) in " ".join(words)}
        return sorted(pid for pid, parent in parents.items() if parent not in parents)

    def complete(self):
        return self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE"

    def pool_reasons(self):
        decisions = self.export("--service", self.grpc)["decisions"]
        return [d["reason"] for d in decisions if d["kind"] == "pool"]

    def test_nodes_come_with_a_study_and_go_with_it(self):
        service = self.serve_engine("--max-nodes", "3")
        self.assertEqual(self.nodes(), [])
        self.submit(steps=10, trials=6)
        wait_for(lambda: len(self.nodes()) == 3, "three nodes for six trials")
        self.assertEqual(len(self.agents()), 3)
        wait_for(self.complete, "the study to end")
        record = self.export("--service", self.grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 6)
        for trial in record["trials"]:
            self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, 11)))
        grows = [d for d in record["decisions"] if d["kind"] == "pool"][0]
        self.assertTrue(grows["reason"].startswith("pool grows from 0 to 3 nodes: "), grows)
        self.assertEqual(int(grows["to_slots"]), 3)
        wait_for(lambda: not self.nodes(), "the nodes to be released")
        wait_for(lambda: not self.agents(), "their processes to end")
        # At once, or a node before: whether the last trials end together is the machine's affair.
        self.assertRegex(self.pool_reasons()[-1], "^pool shrinks from [123] to 0 nodes: no trials")
        service.terminate()
        self.finish(service)

    def test_the_next_service_takes_the_nodes_over_and_can_end_them(self):
        service = self.serve_engine("--max-nodes", "2")
        self.submit(steps=60, trials=2)
        wait_for(lambda: len(self.nodes()) == 2, "two nodes")
        before = self.agents()
        started = lambda: len(list((self.dir / "steps").iterdir())) == 2
        wait_for(started, "both trials")
        service.kill()
        service.wait()
        self.assertEqual(self.agents(), before, "trials train on without the service")
        service = self.serve_engine("--max-nodes", "2")
        wait_for(self.complete, "the study to end")
        self.assertEqual(self.agents(), before, "the same nodes, and no others")
        record = self.export("--service", self.grpc)
        for trial in record["trials"]:
            self.assertEqual(trial["state"], "TRIAL_COMPLETE")
            self.assertEqual(len(trial["spans"]), 1, "nothing was started anew")
        wait_for(lambda: not self.agents(), "the pool to shrink to nothing")
        service.terminate()
        self.finish(service)

    def test_a_service_that_stops_leaves_no_process(self):
        service = self.serve_engine("--max-nodes", "2", "--min-nodes", "1")
        wait_for(lambda: len(self.nodes()) == 1, "the least there may be")
        self.submit(steps=10_000, trials=2)
        wait_for(lambda: len(self.nodes()) == 2, "another for the second trial")
        service.terminate()
        self.finish(service)
        self.assertEqual(self.agents(), [])
        service = self.serve_engine("--max-nodes", "2")
        wait_for(lambda: len(self.nodes()) == 2, "both trials are taken up again")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        service.terminate()
        self.finish(service)
        self.assertEqual(self.agents(), [])

    def test_a_node_that_dies_is_replaced(self):
        service = self.serve_engine("--max-nodes", "1")
        self.submit(steps=40, trials=1)
        wait_for(self.agents, "a node")
        wait_for(lambda: (self.dir / "steps" / "0").exists(), "the trial")
        [first] = self.agents()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: self.agents() not in ([], [first]), "another node")
        wait_for(self.complete, "the study to end")
        service.terminate()
        self.finish(service)

    def test_what_is_wrong_is_named(self):
        def refused(*options, folder="other"):
            done = subprocess.run([TUNER, "serve", "--db", self.dir / "x.db", "--grpc", self.grpc,
                                   "--node-dir", self.dir / folder, *options],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr
        local = ("--engine", "local")
        self.assertIn("--min-nodes 3", refused(*local, "--min-nodes", "3", "--max-nodes", "2"))
        self.assertIn("--max-nodes", refused(*local, "--max-nodes", "0"))
        self.assertIn("engine \"cloudy\" is unknown; known are local, command, slurm", refused("--engine", "cloudy"))
        self.assertIn("utility_band", refused(*local, "--pool-size", "cheapest"))
        self.assertIn("min_utility", refused(*local, "--pool-size", "utility_price:min_utility=7"))
        self.assertIn("--engine", refused("--max-nodes", "3"))
        self.serve_engine()
        self.assertIn("used by another service",
                      refused(*local, folder="nodes"))


if __name__ == "__main__":
    unittest.main()
