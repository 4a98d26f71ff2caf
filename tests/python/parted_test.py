"""Replicas one of which has a bit that the others have not: the trial fails, says which, and leaves no checkpoint of it."""
import collections
import json
import pathlib
import re
import sys
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, SharedPoolTest  # noqa: E402

FOUND = {"parameter": r'replica 1 has other values than the others: parameter "\d\.\w+", since a step after 59, found after '
                      r"step 60\. Likely reasons: ",
         "moment": r'replica 1 has other values than the others: exp_avg\w* of "\d\.\w+", since',
         "step": r'replica 1 has other values than the others: step of "\d\.\w+", since',
         "buffer": r'buffer "constant" has changed on replica 1 and not on all, found after step 100\.'}


class Comparing(SharedPoolTest):
    def checks(self):
        """The service's count of comparisons, by result."""
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            found = re.findall(r'^espalier_replica_checks_total\{result="(\w+)"\} (\d+)', answer.read().decode(), re.MULTILINE)
        return collections.Counter({result: int(count) for result, count in found})


class Parted(Comparing):
    def check(self, kinds):
        space = {"of": {"_type": "choice", "_value": list(FOUND)}, "kind": {"_type": "choice", "_value": kinds},
                 "draw": {"_type": "choice", "_value": [1]}, "evaluates": {"_type": "choice", "_value": [True]}}
        study = self.study([sys.executable, str(ROOT / "tests/python/parted.py")], trials=len(FOUND) * len(kinds),
                           max_restarts=0, sampler="grid", search_space=space, slots={"min": 2, "max": 2}, max_consecutive_failures=100)
        before = self.checks()
        self.run_tuner("submit", study, "--service", self.grpc, "--wait", timeout=LONG_S, code=1)
        trials = self.export()["trials"]
        counted = self.checks()
        counted.subtract(before)
        self.assertEqual((counted["unlike"], counted["norms"]), (len(trials), 0))
        self.assertGreaterEqual(counted["alike"], 60 * len(trials))
        self.assertEqual(len(trials), len(FOUND) * len(kinds))
        for trial in trials:
            of = next(v for p in trial["parameters"] if (v := json.loads(p["json"])) in FOUND)
            with self.subTest(of=of):
                self.assertEqual(trial["state"], "TRIAL_FAIL")
                self.assertRegex(trial["reason"], "replicas that train one model have parted: .*" + FOUND[of])
                self.assertEqual(trial["values"], [], "found before the epoch's end")
        self.assertEqual(list(self.dir.rglob("checkpoints/*/step-*")), [])

    def test_is_found_and_named(self):
        self.check(["float32"])

    def test_in_other_types(self):
        self.check(["bfloat16", "int64"])


class UnlikeFromTheStart(Comparing):
    """Two replicas that begin together."""

    def trials(self, ways, code=0, **environment):
        command = ["env", *(f"{name}={value}" for name, value in environment.items()), sys.executable,
                   str(ROOT / "tests/python/unlike_start.py")]
        study = self.study(command, trials=len(ways), max_restarts=0, sampler="grid", max_consecutive_failures=100,
                           search_space={"of": {"_type": "choice", "_value": ways}}, slots={"min": 2, "max": 2})
        self.run_tuner("submit", study, "--service", self.grpc, "--wait", timeout=LONG_S, code=code)
        return {json.loads(trial["parameters"][0]["json"]): trial for trial in self.export()["trials"]}

    def check(self, found, **environment):
        before = self.checks()["unlike"]
        trials = self.trials(list(found), code=1, **environment)
        self.assertEqual(self.checks()["unlike"] - before, len(found))
        for of, names in found.items():
            with self.subTest(of=of):
                trial = trials[of]
                self.assertEqual(trial["state"], "TRIAL_FAIL")
                self.assertRegex(trial["reason"], f"replica 1 begins with other values than the others: {names}. Replicas begin alike")
                self.assertRegex(trial["reason"], r"a seed by the rank, the time or the process \(torch.manual_seed\)")
                self.assertEqual(trial["values"], [], "before the first step")

    FOUND = {"parameter": r'parameter "0.weight", parameter "0.bias", parameter "2.weight" and 1 more',
             "buffer": 'buffer "constant"', "numpy": 'parameter "2.weight"'}

    def test_it_is_named_before_the_first_step(self):
        self.check(self.FOUND)

    def test_also_where_replicas_round_differently(self):
        self.check(self.FOUND, ESPALIER_CHECK_REPLICAS="norms")

    def test_running_statistics_are_each_replicas_own(self):
        for mode, counted in (("on", "alike"), ("norms", "norms")):
            with self.subTest(mode):
                before = self.checks()[counted]
                self.assertEqual(self.trials(["statistics"], ESPALIER_CHECK_REPLICAS=mode)["statistics"]["state"], "TRIAL_COMPLETE")
                self.assertGreaterEqual(self.checks()[counted] - before, 4, "each step and each epoch's end")
                self.name += "_again"

    def test_unless_nothing_is_to_be_compared(self):
        for trial in self.trials(list(self.FOUND), ESPALIER_CHECK_REPLICAS="off").values():
            self.assertEqual(trial["state"], "TRIAL_COMPLETE", trial["reason"])
            self.assertEqual({value["extra"]["replicas"] for value in trial["values"]}, {2})


if __name__ == "__main__":
    unittest.main()
