"""Studies of several metrics: reported side by side, shown as a Pareto front, pruned by the chance to end on it."""
import contextlib
import io
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest  # noqa: E402

import espalier  # noqa: E402
from espalier import space  # noqa: E402

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
        result, out = self.tune(PROGRAM, trials=12, pruner="promise")
        complete = {trial["number"]: (-trial["value"], trial["other_values"][0])
                    for trial in result.trials if trial["state"] == "TRIAL_COMPLETE"}
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

    def test_one_that_has_not_told_of_a_metric_has_failed(self):
        with self.assertRaises(espalier.StudyError) as raised:
            self.tune(PROGRAM.replace("latency_ms=", "latency="), trials=1)
        self.assertIn('has not told of metric "latency_ms"', str(raised.exception))

    def test_what_needs_one_metric_is_refused(self):
        for keys, why in (({"target": 0.9}, '"target": a study of 2 metrics'), ({"pruner": "median"}, 'give "none", "promise"'),
                          ({"metric": ["a", "a"]}, "names that are different")):
            with self.assertRaises(espalier.UsageError) as raised:
                self.tune(PROGRAM, trials=1, **keys)
            self.assertIn(why, str(raised.exception))
        with self.assertRaises(espalier.UsageError) as raised:
            self.tune(PROGRAM, trials=1, direction="maximize")
        self.assertIn("in a list each has its own", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
