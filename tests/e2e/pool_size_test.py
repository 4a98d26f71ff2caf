"""`tuner serve --engine local`: nodes are processes that come with a study and go with it."""
import json
import pathlib
import re
import signal
import subprocess
import unittest
import urllib.request

from harness import LEASE_S, TUNER, TunerTest, kill, processes, wait_for, without_forks

LOST_AFTER_S = 2  # where a test waits until a node that is gone, or whose service was, counts as lost


class PoolSize(TunerTest):
    def setUp(self):
        super().setUp()
        self.grpc, self.http = self.held_address(), self.held_address()
        (self.dir / "steps").mkdir()

    def tearDown(self):
        for pid in self.agents():
            kill(pid)
        super().tearDown()

    def serve_engine(self, *options, lease_s=LEASE_S):
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db",
                             self.dir / "pool.db", "--lease", lease_s, "--engine", "local",
                             "--node-start", "1", "--node-dir", self.dir / "nodes", *options)
        self.wait_service(service)
        return service

    def submit(self, steps, trials, also=":", **keys):
        script = self.resumable_trial(steps, 0.2, also)
        self.run_tuner("submit", self.study([script], trials=trials, **keys), "--service", self.grpc)

    def nodes(self):
        with urllib.request.urlopen(f"http://{self.http}/api/pool") as answer:
            return json.load(answer).get("nodes", [])

    def agents(self):
        """Processes of nodes, by whose they are: their folder is on their command line."""
        return sorted(without_forks({pid: parent for pid, parent, words in processes()
                                     if "agent" in words and str(self.dir) in " ".join(words)}))

    def complete(self):
        """Asked again and again, so without a process."""
        with urllib.request.urlopen(f"http://{self.http}/api/studies") as answer:
            [study] = json.load(answer)["studies"]
        return study["state"] == "STUDY_COMPLETE"

    def pool_reasons(self):
        decisions = self.export("--service", self.grpc)["decisions"]
        return [d["reason"] for d in decisions if d["kind"] == "pool"]

    def test_nodes_come_with_a_study_and_go_with_it(self):
        service = self.serve_engine("--max-nodes", "3")
        self.assertEqual(self.nodes(), [])
        self.submit(steps=10, trials=6, also=self.until_go())
        wait_for(lambda: len(self.nodes()) == 3, "three nodes for six trials")
        self.assertEqual(len(self.agents()), 3)
        self.go()
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
        self.submit(steps=15, trials=2, also=self.until_go())
        wait_for(lambda: len(self.nodes()) == 2, "two nodes")
        before = self.agents()
        wait_for(lambda: self.taken(0) and self.taken(1), "both trials")
        service.kill()
        service.wait()
        self.assertEqual(self.agents(), before, "trials train on without the service")
        service = self.serve_engine("--max-nodes", "2")
        self.go()

        def complete_on_these():
            self.assertLessEqual(set(self.agents()), set(before), "no other nodes")
            return self.complete()

        wait_for(complete_on_these, "the study to end")
        record = self.export("--service", self.grpc)
        for trial in record["trials"]:
            self.assertEqual(trial["state"], "TRIAL_COMPLETE")
            self.assertEqual(len(trial["spans"]), 1, "nothing was started anew")
        wait_for(lambda: not self.agents(), "the pool to shrink to nothing")
        service.terminate()
        self.finish(service)

    def test_a_service_that_stops_leaves_no_process(self):
        service = self.serve_engine("--max-nodes", "2", "--min-nodes", "1", lease_s=LOST_AFTER_S)
        wait_for(lambda: len(self.nodes()) == 1, "the least there may be")
        self.submit(steps=10_000, trials=2)
        wait_for(lambda: len(self.nodes()) == 2, "another for the second trial")
        service.terminate()
        self.finish(service)
        self.assertEqual(self.agents(), [])
        service = self.serve_engine("--max-nodes", "2", lease_s=LOST_AFTER_S)
        wait_for(lambda: len(self.nodes()) == 2, "both trials are taken up again")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        service.terminate()
        self.finish(service)
        self.assertEqual(self.agents(), [])

    def test_a_node_that_dies_is_replaced(self):
        service = self.serve_engine("--max-nodes", "1", lease_s=LOST_AFTER_S)
        self.submit(steps=10, trials=1, also=self.until_go())
        wait_for(self.agents, "a node")
        wait_for(lambda: self.taken(0), "the trial")
        [first] = self.agents()
        kill(first)
        wait_for(lambda: self.agents() not in ([], [first]), "another node")
        self.go()
        wait_for(self.complete, "the study to end")
        service.terminate()
        self.finish(service)

    def templates(self, **of_spot):
        spot = {"name": "spot", "slots": 1, "price_per_hour": 0.25, "max_nodes": 2, "start_s": 1, "spot": True, **of_spot}
        return self.write("templates.json", [
            {"name": "on-demand", "slots": 1, "price_per_hour": 3600, "max_nodes": 2, "start_s": 1}, spot])

    def serve_templates(self, *options, lease_s=LEASE_S):
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "pool.db", "--lease",
                             lease_s, "--engine", "local", "--node-dir", self.dir / "nodes", *options)
        self.wait_service(service)
        return service

    def agent_of(self, node):
        [pid] = [pid for pid in self.agents() if f"/{node}\0" in
                 pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
        return pid

    def test_of_several_templates_the_cheap_come_first_and_the_record_tells_what_was_paid(self):
        service = self.serve_templates("--node-templates", self.templates())
        self.submit(steps=10, trials=3, also=self.until_go(), max_restarts=0)
        wait_for(lambda: len(self.nodes()) == 3, "three nodes for three trials")
        prices = {n["name"]: (n["price_per_hour"], n["spot"]) for n in self.nodes()}
        self.assertEqual(prices, {"pool-spot-1": (0.25, True), "pool-spot-2": (0.25, True),
                                  "pool-on-demand-1": (3600, False)})
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            self.assertIn('espalier_price_per_hour{template="spot",gpu_type="",spot="yes"} 0.5', answer.read().decode())
        wait_for(lambda: all(self.taken(n) for n in range(3)), "all trials to train")
        taken = self.agent_of("pool-spot-1")
        kill(taken, signal.SIGTERM)  # its machine goes away: the notice is that of --drain-on-term
        wait_for(lambda: taken not in self.agents(), "its agent to leave")
        self.go()
        wait_for(self.complete, "the study to end")
        record = self.export("--service", self.grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 3)
        for n, trial in enumerate(record["trials"]):
            self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, 11)))
            self.assertEqual(self.taken(n), list(range(1, 11)), "no step twice")
        paid = {p["node_template"]: p for p in record["study"]["payments"]}
        self.assertEqual({name: (p["spot"], p["price_per_hour"]) for name, p in paid.items()},
                         {"spot": (True, 0.25), "on-demand": (False, 3600)})
        for p in paid.values():
            self.assertGreater(p["node_seconds"], 0)
            self.assertAlmostEqual(p["cost"], p["node_seconds"] / 3600 * p["price_per_hour"])
        of_trials = sum(p["cost"] for t in record["trials"] for p in t["payments"])
        self.assertAlmostEqual(record["study"]["spent"], of_trials)
        self.assertAlmostEqual(record["study"]["spent"], sum(p["cost"] for p in paid.values()))
        shown = self.run_tuner("show", "e2e", "--service", self.grpc).stdout
        self.assertRegex(shown, r"paid for slots\n  nodes +an hour +node-hours +slot-hours +paid\n")
        self.assertRegex(shown, r"on-demand, on demand +3600 ")
        self.assertRegex(shown, r"spot, spot +0\.25 ")
        self.assertIn("spent", self.run_tuner("ls", "--service", self.grpc).stdout)
        self.assertTrue(self.run_tuner("export", "e2e", "--service", self.grpc, "--format", "csv").stdout
                        .partition("\n")[0].endswith(",reason,paid"))
        reasons = self.pool_reasons()
        self.assertTrue(any(re.match("pool grows from 0 to 2 of spot, all in all 3 nodes: .*spot 2, 3600.5 an hour", r)
                            for r in reasons), reasons)
        service.terminate()
        self.finish(service)

    def test_nodes_of_templates_that_are_no_more_are_given_back(self):
        service = self.serve_templates("--node-templates", self.templates(min_nodes=1), lease_s=LOST_AFTER_S)
        wait_for(lambda: len(self.nodes()) == 1, "the least there may be")
        service.kill()
        service.wait()
        [left] = self.agents()
        service = self.serve_templates("--max-nodes", "1", "--min-nodes", "1", lease_s=LOST_AFTER_S)
        wait_for(lambda: [n["name"] for n in self.nodes()] == ["pool-1"], "its nodes, and no others")
        wait_for(lambda: left not in self.agents(), "the other's agent to end")
        service.terminate()
        self.finish(service)
        self.assertEqual(self.agents(), [])

    def test_what_is_wrong_is_named(self):
        def refused(*options, folder="other", grpc=self.grpc):
            done = subprocess.run([TUNER, "serve", "--db", self.dir / "x.db", "--grpc", grpc,
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
        self.assertIn('template "on-demand": --engine kubernetes: engine "kubernetes": option "image" needs',
                      refused("--engine", "kubernetes", "--node-templates", self.templates()))
        self.assertIn("--keep-nodes: the nodes of --engine local are processes of the service",
                      refused(*local, "--keep-nodes"))
        self.assertIn("--engine slurm: its nodes are other machines, which do not reach 127.0.0.1:7077: give --grpc 0.0.0.0:7077",
                      refused("--engine", "slurm", "--max-nodes", "1", grpc="127.0.0.1:7077"))
        self.assertIn("--adaptdl-jobs: needs --engine kubernetes, got --engine local", refused(*local, "--adaptdl-jobs"))
        self.assertIn("--node-templates excludes --max-nodes",
                      refused(*local, "--node-templates", self.templates(), "--max-nodes", "3"))
        spot = {"name": "spot", "slots": 1, "price_per_hour": 1, "max_nodes": 1}
        for templates, said in [
                ("[", "is not JSON"),
                ([], "must be a list of 1 to 16 templates"),
                ([1], "template 1 of the list: must be an object"),
                ([{**spot, "name": None}], 'template 1 of the list: "name": must be a text of at most 200 bytes, got null'),
                ([{**spot, "name": "Spot"}], 'template "Spot": "name": must be lower-case letters, digits and hyphens'),
                ([{**spot, "prize": 1}], 'template "spot": unknown key "prize"; known are name, slots, gpus,'),
                ([{**spot, "gpus": 1}], 'give either "slots" or "gpus"'),
                ([{**spot, "slots": 0}], '"slots": must be a whole number from 1 to 4096, got 0'),
                ([{**spot, "price_per_hour": -1}], '"price_per_hour": must be 0 or more, got -1'),
                ([{"name": "spot", "slots": 1, "max_nodes": 1}], '"price_per_hour": is needed: what a node costs an hour'),
                ([{**spot, "spot": "yes"}], '"spot": must be true or false, got "yes"'),
                ([{**spot, "start_s": "1"}], '"start_s": must be 0 to 2592000, got "1"'),
                ([{**spot, "max_nodes": 257}], '"max_nodes": must be a whole number from 1 to 256, got 257'),
                ([{**spot, "min_nodes": 2}], '"min_nodes": must be a whole number from 0 to 1, got 2'),
                ([spot, spot], 'template "spot" is there twice'),
                ([{**spot, "max_nodes": 200}, {**spot, "name": "b", "max_nodes": 200}],
                 '"max_nodes" of all templates are 400 together: must be at most 256'),
                ([{**spot, "options": {"gres": True}}], '"gres" must be a text, a number or a list of them'),
                ([{**spot, "options": {"gres": "gpu:1"}}],
                 'template "spot": --engine local: engine "local" has no option "gres"; it has end_grace_s')]:
            text = refused(*local, "--node-templates", self.write("wrong.json", templates))
            self.assertIn("wrong.json", text)
            self.assertIn(said, text)
        self.assertIn("nowhere.json", refused(*local, "--node-templates", self.dir / "nowhere.json"))
        self.serve_engine()
        self.assertIn("used by another service",
                      refused(*local, folder="nodes"))


if __name__ == "__main__":
    unittest.main()
