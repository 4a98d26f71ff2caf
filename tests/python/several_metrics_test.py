"""Studies of several metrics: reported side by side, shown as a Pareto front, pruned by the chance to end on it. And of
constraints on what is reported."""
import contextlib
import io
import math
import pathlib
import random
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest  # noqa: E402

import espalier  # noqa: E402
from espalier import _display, space  # noqa: E402

METRICS = [{"name": "accuracy", "direction": "maximize"}, "latency_ms"]
# The wider, the better and the slower; a bad rate loses in accuracy alone. It learns for 30 steps.
PROGRAM = """
import sys
sys.modules["torch"] = None  # as where it is not installed
import espalier
trial = espalier.trial()
width, rate = trial.get("width", 8), trial.get("rate", 0.5)
for step in range(1, 31):
    accuracy = (1 - 1 / width - abs(rate - 0.5)) * (1 - 0.8 / step)
    trial.report(step, accuracy, latency_ms=width / 10 + 1 / step)
    if trial.should_stop(step):
        break
"""


class Front(unittest.TestCase):
    def test_it_is_what_no_trial_dominates(self):
        chance = random.Random(3)
        for directions in (["minimize"], ["minimize", "maximize"], ["maximize", "minimize", "minimize"]):
            trials = [{"number": number, "state": chance.choice(["TRIAL_COMPLETE"] * 4 + ["TRIAL_PRUNED"]),
                       "infeasible": chance.random() < 0.1,
                       "value": chance.choice([math.nan, *range(9)]),
                       "other_values": [chance.randrange(9) for _ in directions[1:]]} for number in range(80)]
            costs = {trial["number"]: [value if word == "minimize" else -value
                                       for word, value in zip(directions, (trial["value"], *trial["other_values"]))]
                     for trial in trials if trial["state"] == "TRIAL_COMPLETE" and not trial["infeasible"]
                     and not math.isnan(trial["value"])}
            front = [number for number, own in costs.items()
                     if not any(other != own and all(a <= b for a, b in zip(other, own)) for other in costs.values())]
            details = {"study": {"directions": directions}, "trials": trials}
            self.assertEqual([trial["number"] for trial in _display.front(details)], front)


class SeveralMetrics(TunerTest):
    def setUp(self):
        super().setUp()
        self.be_in_folder()

    def tune(self, program, **keys):
        script = self.write("train.py", program)
        keys = {"metric": METRICS, "slots": 2, "sampler": "random", "seed": 3, "name": "two", "max_step": 30, **keys}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            result = espalier.tune([sys.executable, str(script)],
                                   {"width": space.randint(2, 64), "rate": space.uniform(0, 1)}, **keys)
        return result, out.getvalue()

    def test_a_study_has_a_front(self):
        result, out = self.tune(PROGRAM, trials=12, pruner="promise", constraints=["latency_ms <= 5"])
        complete = {trial["number"]: (-trial["value"], trial["other_values"][0])
                    for trial in result.trials if trial["state"] == "TRIAL_COMPLETE"}
        broken = {number for number, (_, latency) in complete.items() if latency > 5}
        self.assertTrue(broken, "nothing is beyond the bound")
        self.assertEqual({trial["number"] for trial in result.trials
                          if trial["infeasible"] and trial["state"] == "TRIAL_COMPLETE"}, broken)
        complete = {number: values for number, values in complete.items() if number not in broken}
        undominated = [number for number, own in complete.items()
                       if not any(other != own and all(a <= b for a, b in zip(other, own)) for other in complete.values())]
        self.assertGreater(len(undominated), 1)
        self.assertEqual([trial["number"] for trial in result.front], undominated)
        self.assertIsNone(result.best_trial)
        self.assertIn("Pareto front of accuracy, latency_ms: trials " + ", ".join(map(str, undominated)), repr(result))
        pruned = [trial for trial in result.trials if trial["state"] == "TRIAL_PRUNED"]
        self.assertTrue(pruned, "nothing was pruned")
        for trial in pruned:
            self.assertIn("chance to end on the Pareto front", trial["reason"])
        row = next(row for row in result.rows() if row["trial"] == undominated[0])
        self.assertEqual((row["final_value"], row["final_value_2"]),
                         (-complete[undominated[0]][0], complete[undominated[0]][1]))
        shown = self.run_tuner("show", "two", "--db", pathlib.Path(result.directory) / "espalier.db").stdout
        self.assertIn(f"Pareto front (accuracy, latency_ms): {len(undominated)} trials: {undominated[0]} (", shown)
        self.assertIn("accuracy, latency", out)

    def test_the_best_trial_keeps_to_the_constraints(self):
        wide, narrow = {"width": 60, "rate": 0.5}, {"width": 8, "rate": 0.5}
        metric = {"name": "accuracy", "direction": "maximize"}
        result, _ = self.tune(PROGRAM, metric=metric, trials=2, points=[wide, narrow], constraints=["latency_ms <= 3"])
        self.assertEqual(result.best_parameters, narrow)
        self.assertLess(result.best_value, result.trials[0]["value"])
        self.assertEqual([trial["infeasible"] for trial in result.trials], [True, False])
        self.assertIn("and breaks latency_ms <= 3 (it is 6.0", result.trials[0]["reason"])
        self.assertEqual([row["infeasible"] for row in result.rows()], [True, False])
        self.assertIn("1 of 2 trials not within latency_ms <= 3", repr(result))
        self.assertEqual(result.study["constraints"], ["latency_ms <= 3"])
        database = ["--db", pathlib.Path(result.directory) / "espalier.db"]
        shown = self.run_tuner("show", "two", *database).stdout
        self.assertIn("constraints: latency_ms <= 3: 1 trial breaks it", shown)
        self.assertIn(", trial 1: ", shown)
        self.assertIn("breaks", self.run_tuner("show", "two", "--trial", "0", *database).stdout)
        header, *rows = self.run_tuner("export", "two", *database).stdout.splitlines()
        self.assertEqual({tuple(row.split(",")[i] for i in (0, header.split(",").index("infeasible"))) for row in rows},
                         {("0", "true"), ("1", "false")})
        report = pathlib.Path(result.directory, "report.html").read_text()
        self.assertIn("Constraints: latency_ms &lt;= 3: 1 trial breaks it.", report)

    def test_figures_are_read_from_the_output(self):
        printing = 'for ms in 9, 4: print("Epoch", 10 - ms, "loss", ms / 8, "latency", ms, "ms")'
        metric = [{"name": "loss", "from_output": "loss ([0-9.]+) latency (?P<ms>[0-9]+)", "step": "Epoch ([0-9]+)"}, "ms"]
        result, _ = self.tune(printing, metric=metric, trials=1, constraints=["ms <= 4"])
        self.assertEqual([(trial["value"], trial["other_values"], trial["infeasible"]) for trial in result.front],
                         [(0.5, [4], False)])

    def test_one_that_has_not_told_of_a_metric_has_failed(self):
        with self.assertRaises(espalier.StudyError) as raised:
            self.tune(PROGRAM.replace("latency_ms=", "latency="), trials=1)
        self.assertIn('has not told of metric "latency_ms"', str(raised.exception))

    def test_what_needs_one_metric_is_refused(self):
        for keys, why in (({"target": 0.9}, '"target": a study of 2 metrics'), ({"pruner": "median"}, 'give "none", "promise"'),
                          ({"metric": ["a", "a"]}, "names that are different"),
                          ({"constraints": ["latency_ms < 3"]}, 'needs "FIGURE <= NUMBER"'),
                          ({"metric": "loss", "sampler": "cmaes", "constraints": ["a <= 3"]}, "does not heed them")):
            with self.assertRaises(espalier.UsageError) as raised:
                self.tune(PROGRAM, trials=1, **keys)
            self.assertIn(why, str(raised.exception))
        with self.assertRaises(espalier.UsageError) as raised:
            self.tune(PROGRAM, trials=1, direction="maximize")
        self.assertIn("in a list each has its own", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
