"""What another policy would have made of a study that the service has recorded, and what decided in it."""
import json
import unittest
import urllib.error
import urllib.request

from harness import ROOT, TunerTest, wait_for
from json_schema import Schemas

OPENAPI = json.loads((ROOT / "docs/openapi.json").read_text())
SCHEMAS = Schemas(OPENAPI)
TRIALS = 6
PROGRAM = """#!/bin/sh
for step in 1 2 3; do
  sleep 0.02
  echo "step $step loss=$1"
done
"""


class Simulations(TunerTest):
    def call(self, method, path, body=None, code=200):
        data = body if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.http}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                status, text = reply.status, reply.read()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read()
        self.assertEqual(status, code, f"{method} {path} {body}: {text[:300]}")
        return json.loads(text)

    def record(self):
        """A study that has come to its end on two slots."""
        self.serve(self.dir / "studies.db")
        self.agent(2)
        program = self.write("program.sh", PROGRAM, 0o755)
        study = self.call("POST", "/api/studies", {
            "name": "recorded", "command": [program, "{x}"], "trials": TRIALS, "directory": str(self.dir),
            "metric": {"name": "loss", "direction": "minimize", "from_output": "step (?P<step>[0-9]+) loss=(.*)"},
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}}, 201)
        path = "/api/studies/recorded"
        wait_for(lambda: self.call("GET", path)["study"]["state"] == "STUDY_COMPLETE", "the study to end")
        return study["id"], path

    def simulated(self, path, **wanted):
        number = self.call("POST", f"{path}/simulations", wanted, 202)["id"]

        def ended():
            answer = self.call("GET", f"/api/simulations/{number}")
            SCHEMAS.check(answer, {"$ref": "#/components/schemas/Simulation"})
            return answer if answer["state"] != "running" else None
        return wait_for(ended, "the simulation to end")

    def test_two_policies_beside_what_was_recorded(self):
        study, path = self.record()
        answer = self.simulated(path, policy="fixed", slots=4)
        self.assertEqual((answer["state"], answer["error"]), ("done", None))
        self.assertEqual(answer["recorded"]["complete"], TRIALS)
        self.assertEqual([run["policy"] for run in answer["runs"]], ["promise_goodput", "fixed"])
        trials = {t["id"]: t["number"] for t in self.call("GET", path)["trials"]}
        for run in answer["runs"]:
            self.assertEqual(run["figures"]["complete"], TRIALS)
            self.assertGreater(run["figures"]["finish_s"], 0)
            self.assertAlmostEqual(run["figures"]["best"], answer["recorded"]["best"])
            lanes = run["lanes"]
            self.assertEqual(sum(node["slots"] for node in lanes["nodes"]), 4)
            self.assertEqual(lanes["studies"], [{"id": study, "name": "recorded"}])
            spans = lanes["spans"]
            self.assertEqual(dict(zip(spans["trial_id"], spans["trial"])), trials)
            self.assertTrue(all(0 <= begin <= end <= lanes["to"] for begin, end in zip(spans["from"], spans["to"])))
            self.assertEqual({mark["kind"] for mark in lanes["marks"]} & {"start", "finish"}, {"start", "finish"})
        self.assertTrue(any("compare them with one another" in text for text in answer["caveats"]))

    def test_what_cannot_be_simulated_says_why(self):
        _, path = self.record()
        unknown = self.call("POST", f"{path}/simulations", {"policy": "best"}, 400)["error"]
        self.assertIn('"best"', unknown)
        self.assertIn("promise_goodput", unknown)
        self.assertIn("a whole number from 1 to 4096",
                      self.call("POST", f"{path}/simulations", {"policy": "fixed", "slots": 0}, 400)["error"])
        self.assertIn("slits", self.call("POST", f"{path}/simulations", {"policy": "fixed:slits=1"}, 400)["error"])
        self.call("POST", "/api/studies", {"name": "asked", "ask_and_tell": True,
                                           "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}}, 201)
        self.assertIn("its clients run its trials",
                      self.call("POST", "/api/studies/asked/simulations", {"policy": "fixed"}, 409)["error"])

    def test_what_decided_in_it(self):
        study, _ = self.record()
        path = f"/api/view/studies/{study}/analysis?what="
        importance = self.call("GET", f"{path}importance")
        self.assertEqual(importance["complete"], TRIALS)
        self.assertEqual(importance["objectives"][0]["parameters"], [{"name": "x", "importance": 1}])
        [best] = self.call("GET", f"{path}pareto")["trials"]
        shares = self.call("GET", f"{path}edf")["objectives"][0]
        self.assertEqual(best["values"], shares["value"][:1])
        self.assertEqual(shares["share"][-1], 1)
        improvements = self.call("GET", f"{path}best")["objectives"][0]
        self.assertEqual((improvements["trial_id"][-1], improvements["value"][-1]), (best["trial_id"], best["values"][0]))
        self.assertEqual(improvements["at"], sorted(improvements["at"]))
        self.assertIn("importance, pareto, edf, best", self.call("GET", f"{path}all", code=400)["error"])


if __name__ == "__main__":
    unittest.main()
