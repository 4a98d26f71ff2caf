"""espalier.tune runs studies by a real `tuner run`, and by a real service."""
import contextlib
import io
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest, kill, processes, wait_for  # noqa: E402

import espalier  # noqa: E402
import objectives  # noqa: E402
from espalier import _functions, _run, space  # noqa: E402

SPACE = {"x": space.uniform(0, 1)}
TRIAL = '#!/bin/sh\ntuner tell --step 1 --value "$ESPALIER_PARAM_X"\n'
# The first one ends. The others say that they have come this far, and stay.
WAITING = """#!/bin/sh
{before}tuner tell --step 1 --value 0.5
while [ $ESPALIER_TRIAL_NUMBER != 0 ]; do sleep 0.1; done
"""
PROGRAM = """
import sys
import espalier
from espalier import space
try:
    result = espalier.tune([sys.argv[1]], {{"x": space.uniform(0, 1)}}, name="mine", trials=4, metric="loss",
                           sampler="random", {keys})
    print("RESULT", result.state, len(result.trials), result.best_value)
except KeyboardInterrupt:
    print("INTERRUPTED")
"""


class TuneTest(TunerTest):
    def setUp(self):
        super().setUp()
        self.be_in_folder()

    def program(self, text=TRIAL):
        return self.write("trial.sh", text, 0o755)

    def tune(self, objective, space=SPACE, **keys):
        """With what it has printed."""
        keys = {"trials": 2, "slots": 2, "sampler": "random", "metric": "loss", "seed": 1, **keys}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            result = espalier.tune(objective, space, **{k: v for k, v in keys.items() if v is not None})
        return result, out.getvalue()


class OfThisMachine(TuneTest):
    def test_a_function_of_a_module(self):
        result, shown = self.tune(objectives.quadratic)
        self.assertEqual((result.state, len(result.trials)), ("COMPLETE", 2))
        values = [(trial["parameters"]["x"] - 0.3) ** 2 for trial in result.trials]
        self.assertAlmostEqual(result.best_value, min(values), places=9)
        self.assertEqual(result.best_parameters, result.best_trial["parameters"])
        self.assertEqual([row["final_value"] for row in result.rows()], [trial["value"] for trial in result.trials])
        steps = result.rows(steps=True)
        self.assertEqual([(row["trial"], row["step"], row["value"]) for row in steps],
                         [(0, 1, 11), (0, 2, 12), (1, 1, 11), (1, 2, 12)])
        self.assertTrue(all(row["extra.twice"] == 2 * row["x"] for row in steps))
        # One that gets no processor for 2 s when it is to fork is given up.
        forked = {row["extra.forked"] for row in steps}
        self.assertTrue(forked == {1} or "is given up: it does not fork" in (result.directory / "tuner.log").read_text())
        heading, *rest = shown.splitlines()
        ended = [line for line in rest if not line.startswith("page ")]
        self.assertRegex(heading, f"^study quadratic: 2 trials( on 2 slots)?, in {self.dir}/espalier-runs/quadratic$")
        self.assertEqual(sorted(line.split()[1] for line in ended), ["0", "1"])
        self.assertIn(f"loss {result.best_value:.6g}", shown)
        self.assertEqual(result.directory, self.dir / "espalier-runs/quadratic")
        self.assertTrue((result.directory / "report.html").exists())
        self.assertIn("2 of 2 ended", repr(result))
        self.assertIn("<td>complete</td>", result._repr_html_())

    def test_the_elastic_api_works_in_a_function(self):
        result, _ = self.tune(objectives.elastic, {"lr": space.uniform(0.1, 0.2)}, trials=1, min_slots=2, max_slots=2)
        self.assertEqual([int(v["step"]) for v in result.trials[0]["values"]], list(range(1, 11)))
        self.assertEqual({v["extra"]["replicas"] for v in result.trials[0]["values"]}, {2})
        self.assertLess(result.best_value, 0.1)

    def test_all_trials_fail(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, self.assertRaises(espalier.StudyError) as caught:
            espalier.tune(objectives.broken, SPACE, trials=1, max_restarts=0, slots=1)
        self.assertRegex(out.getvalue(), r"(?m)^trial 0 fail  x=0\.\d+ \(exited with code 1: ValueError: on purpose\)$")
        result = caught.exception.result
        log = self.dir / "espalier-runs/broken/trials/broken/trial-0/replica-1.log"
        self.assertRegex(str(caught.exception), r"(?s)trial 0: .*x is 0\.\d+.*ValueError: on purpose\n"
                                                f"all of its output: {log}$")
        self.assertEqual([trial["state"] for trial in result.trials], ["TRIAL_FAIL"])
        self.assertEqual(result.output(0), log.read_text())
        self.assertRegex(result._repr_html_(), "<th>why</th>.*<td>exited with code 1: ValueError: on purpose</td>")
        with self.assertRaisesRegex(espalier.NotFoundError, "has no trial 1"):
            result.output(1)

    def test_scripts_and_commands(self):
        script = self.write("script.py", "import os, subprocess\n"
                                         "subprocess.run(['tuner', 'tell', '--step', '1', '--value',\n"
                                         "                os.environ['ESPALIER_PARAM_X']], check=True)\n")
        for objective in (script, pathlib.Path("script.py"), f"sh {self.program()}", ["sh", "trial.sh"], "trial.sh"):
            with self.subTest(objective):
                result, _ = self.tune(objective, direction="maximize", show=False)
                self.assertEqual(result.best_value, max(trial["parameters"]["x"] for trial in result.trials))
        self.assertEqual(result.directory.parent, self.dir / "espalier-runs")
        self.assertEqual(result.name, "trial-2")  # "sh" before; "script" and "script-2"

    def test_a_python_script_gets_its_arguments(self):
        (self.dir / "{x}").mkdir()  # which is the name of a folder
        self.write("{x}/script.py", "import sys\nprint(f'loss={sys.argv[2]}')\n")
        metric = {"name": "loss", "from_output": "loss=(.*)"}
        for objective, value in ((["{x}/script.py", "--value", 7], lambda x: 7),
                                 ("{x}/script.py --value {x}", lambda x: x)):
            with self.subTest(objective):
                result, _ = self.tune(objective, trials=1, metric=metric, show=False, points=[{"x": 0.25}])
                self.assertEqual(result.trials[0]["parameters"], {"x": 0.25})
                self.assertEqual(result.best_value, value(0.25))

    def test_a_prior_is_tried_first(self):
        prior = {"x": {"value": 0.25, "confidence": "high"}}
        result, _ = self.tune([self.program()], trials=1, sampler="tpe", prior=prior, show=False)
        self.assertEqual(result.trials[0]["parameters"], {"x": 0.25})
        for refused, why in (({"sampler": "random", "prior": prior}, 'the sampler "random" cannot use it: give "tpe"'),
                             ({"sampler": "tpe", "prior": {"x": 2}}, '"x" is 2, outside its search space')):
            with self.subTest(why), self.assertRaisesRegex(espalier.UsageError, why):
                self.tune([self.program()], show=False, **refused)

    def test_a_study_learns_from_an_earlier_one(self):
        program = self.program()
        self.tune([program], trials=12, name="earlier", sampler="qmc", direction="minimize", show=False)
        for again in range(2):  # the second time it is there already
            result, _ = self.tune([program], trials=4 + again, name="later", sampler="tpe", like="earlier", show=False)
        self.assertEqual(result.study["like"], 'learns from 12 of the 12 ended trials of study "earlier"')
        self.assertLess(sum(trial["parameters"]["x"] for trial in result.trials) / 5, 0.4)
        for refused, why in (({"like": "nothing"}, 'no study "nothing"'),
                             ({"like": "earlier", "direction": "maximize"}, '"earlier" is to minimize')):
            with self.subTest(why), self.assertRaisesRegex(espalier.UsageError, why):
                self.tune([program], sampler="tpe", name="other", show=False, **refused)

    def test_a_study_ends_once_little_can_be_gained(self):
        program = self.program(TRIAL.replace("--step 1", "--step 1 --figure standard_error=9"))
        result, _ = self.tune([program], trials=30, terminator={"name": "regret", "min_trials": 4}, show=False)
        self.assertEqual(result.state, "COMPLETE")
        self.assertIn(len(result.trials), range(4, 30))  # others begin while it is worked out whether it ends
        with self.assertRaisesRegex(espalier.UsageError, 'option "error" needs a number > 0, got 0'):
            self.tune([program], terminator={"name": "regret", "error": 0}, show=False)

    def test_an_earlier_run_is_taken_up_by_its_name(self):
        program = self.program()
        first, shown = self.tune([program], name="mine", trials=1)
        self.assertNotIn("already ended", shown)
        again, shown = self.tune([program], name="mine", trials=1)
        self.assertEqual(again.trials, first.trials)
        self.assertIn('study "mine" had already ended: these are its results (fresh=True starts over)', shown)
        more, _ = self.tune([program], name="mine", trials=2)
        self.assertEqual((len(more.trials), more.trials[0]), (2, first.trials[0]))
        spec = (first.directory / "study.json").read_text()
        with self.assertRaisesRegex(espalier.UsageError, '"search_space" differs.*fresh=True starts over'):
            self.tune([program], {"x": space.uniform(0, 2)}, name="mine", trials=2)
        self.assertEqual((first.directory / "study.json").read_text(), spec)
        fresh, _ = self.tune([program], name="mine", trials=3, seed=7, fresh=True)
        self.assertEqual(len(fresh.trials), 3)
        elsewhere, _ = self.tune([program], directory=self.dir / "there/run", trials=1)
        self.assertEqual(elsewhere.directory, self.dir / "there/run")
        by_folder, shown = self.tune([program], directory=first.directory, trials=3, seed=7)
        self.assertEqual((by_folder.name, by_folder.trials), ("mine", fresh.trials))
        self.assertIn('study "mine" had already ended', shown)

    def test_files_of_others_are_left_alone(self):
        precious = pathlib.Path(self.write("study.json", "precious"))
        with self.assertRaisesRegex(espalier.UsageError, "holds other files and no study"):
            self.tune([self.program()], directory=self.dir)
        self.assertEqual(precious.read_text(), "precious")
        (self.dir / "empty").mkdir()
        with self.assertRaisesRegex(espalier.UsageError, "slots"):
            self.tune([self.program()], directory="empty", slots=0)
        self.assertEqual(list((self.dir / "empty").iterdir()), [])

    def test_what_cannot_be_run_is_said(self):
        program = self.program()
        for wanted, keys in (("trials", {"trials": None}), ("tqe.*tpe", {"sampler": "tqe"}), ("space", {"space": 7}),
                             ('"x"', {"space": {"x": 7}}), ("slots", {"slots": 0}),
                             ("slots", {"address": "127.0.0.1:1"}), ("address", {"token_file": "ada.token"}),
                             ("absent", {"objective": ["./absent"]}), ("max_stepp.*max_step", {"max_stepp": 3}),
                             ("at least 3 slots", {"min_slots": 3}),
                             ("max_slots.*min_slots, which is 2", {"min_slots": 2, "max_slots": 1}),
                             ("command=.*objective", {"command": ["true"]}), ("search_space=.*space", {"search_space": {}}),
                             (f"{re.escape(str(self.dir))}/absent.txt, which is not there", {"needs": {"absent.txt": "make it"}}),
                             ("name", {"name": "../x"}), ("minimize", {"direction": "up"}),
                             ('did you mean "direction"', {"mode": "max"}),
                             ("trials", {"num_samples": 4}),
                             ("of the trial", {"objective": 7}),
                             ("no such script", {"objective": "absent.py"}), ("JSON", {"target": object()})):
            with self.subTest(keys), self.assertRaisesRegex(espalier.UsageError, wanted):
                self.tune(**{"objective": [program], **keys})
        self.assertFalse(list(self.dir.glob("espalier-runs/*")), "nothing is left of what was refused")

    def test_needs_are_of_the_folder_that_one_is_in(self):
        self.write("there.txt", "data")
        result, _ = self.tune([self.program()], needs={"there.txt": "make it"})
        self.assertEqual(result.state, "COMPLETE")

    def test_without_tuner(self):
        with unittest.mock.patch.dict(os.environ, PATH="/nowhere"):
            with self.assertRaisesRegex(espalier.UsageError, "`tuner`"):
                self.tune([self.program()])

    def test_functions_that_cannot_be_imported_need_cloudpickle(self):
        with unittest.mock.patch.dict(sys.modules, cloudpickle=None):
            with self.assertRaisesRegex(espalier.UsageError, "pip install cloudpickle"):
                self.tune(lambda trial: 1.0)

    def test_another_version_of_a_function_is_told_from_the_former(self):
        one, other = (lambda trial, lock=None: len(seen) + 1), (lambda trial, lock=None: len(seen) + 2)
        seen = []
        self.assertTrue(_functions.same_code(one, one))
        self.assertFalse(_functions.same_code(one, other))
        calls = [lambda trial, f=f: f(trial) for f in (one, other, one)]
        self.assertFalse(_functions.same_code(calls[0], calls[1]))  # in what it calls
        self.assertTrue(_functions.same_code(calls[0], calls[2]))
        self.assertTrue(_functions.same_code(lambda: seen, lambda: seen), "the place in the file is no difference")

    def test_what_cannot_be_pickled_is_named(self):
        lock, held = threading.Lock(), {"locks": [threading.Lock()]}

        def helper():
            return lock

        for function, name in ((lambda trial: lock, "^lock"), (lambda trial: held, r"^held\['locks'\]\[0\]"),
                               (lambda trial: helper(), "^helper, which refers to lock"),
                               (lambda trial, given=lock: given, "^given")):
            with self.subTest(name):
                self.assertRegex(_functions.unsendable(function, pickle.Pickler), name + ", a _thread.lock .cannot pickle")
        data = bytes(3_000_000)
        self.assertEqual(_functions.size(lambda trial: data, 3_000_100, pickle.dumps),
                         "3 MB with what it refers to (data: 3 MB)")


class Interrupted(TuneTest):
    """Ctrl-C, and worse, in a program of its own."""

    def begin(self, keys, before="", **more):
        script = self.write("tune.py", PROGRAM.format(keys=keys))
        program = self.program(WAITING.format(before=before))
        out = open(self.dir / "tune.txt", "w")
        self.addCleanup(out.close)
        process = subprocess.Popen([sys.executable, "-u", script, program], stdout=out, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, cwd=self.dir, **more)
        process.out = out.name
        self.processes.append(process)
        return process

    def trials(self):
        return [pid for pid, _, words in processes() if str(self.dir / "trial.sh") in words]

    def reported(self, process, **where):
        """Once both trials that stay on two slots have, and the program has told of the first: it follows the study."""
        def all_three():
            try:
                with espalier.Client(**where) as client:
                    return [t["step"] for t in client.trials("mine", values=False)] == [1, 1, 1]
            except espalier.EspalierError:
                return False
        wait_for(all_three, "the trials to report")
        wait_for(lambda: "trial 0 complete" in self.output(process), "the program to tell of the first")

    def test_once_returns_what_there_is(self):
        process = self.begin("slots=2, stop_grace_s=1")
        self.reported(process, directory=self.dir / "espalier-runs/mine")
        with espalier.Client(directory=self.dir / "espalier-runs/mine") as client:
            self.assertIn(f"\npage {client.pool()['page']}\n", self.output(process))
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertIn("stopping: trials save what they can", self.output(process))
        self.assertIn("stopped; tune(..., name='mine') goes on", self.output(process))
        self.assertIn("RESULT STOPPED 3 0.5", self.output(process))
        self.assertEqual(self.trials(), [])

    def test_twice_ends_the_call(self):
        process = self.begin("slots=2, stop_grace_s=300", before="trap '' TERM\n")
        self.reported(process, directory=self.dir / "espalier-runs/mine")
        process.send_signal(signal.SIGINT)
        wait_for(lambda: "stopping" in self.output(process), "the first to be heard")
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertIn("INTERRUPTED", self.output(process))
        wait_for(lambda: not self.trials(), "the trials to end with their tuner")

    def test_the_tuner_stops_when_its_python_is_killed(self):
        process = self.begin("slots=2, stop_grace_s=1")
        self.reported(process, directory=self.dir / "espalier-runs/mine")
        self.assertTrue(kill(process.pid))
        wait_for(lambda: not self.trials(), "the trials to end")
        wait_for(lambda: not (self.dir / "espalier-runs/mine/service.json").exists(), "the tuner to end")
        told = self.export("--db", self.dir / "espalier-runs/mine/espalier.db", study="mine")
        self.assertEqual(told["study"]["state"], "STUDY_STOPPED")

    def test_a_study_of_a_service_is_stopped(self):
        self.serve(self.dir / "pool.db")
        self.agent(2)
        process = self.begin(f"address={self.http!r}, stop_grace_s=1")
        self.reported(process, address=self.http)
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertIn(f"stopped; Client('{self.http}').resume('mine') goes on", self.output(process))
        self.assertIn("RESULT STOPPED 3 0.5", self.output(process))
        self.assertEqual(self.trials(), [])


class Looks(unittest.TestCase):
    def pause_after(self, look_s):
        """Seconds until the next look after one that has taken so long."""
        clock, pauses = [100.0], []

        def look():
            clock[0] += look_s

        def ended(wait_s):
            pauses.append(wait_s)
            return True

        with unittest.mock.patch.object(_run.time, "monotonic", lambda: clock[0]):
            _run.follow(types.SimpleNamespace(look=look, ended=ended), None, 0.5)
        return round(pauses[0], 6)

    def test_are_fewer_where_they_take_long_but_never_far_apart(self):
        self.assertEqual([self.pause_after(look_s) for look_s in (0.01, 0.2, 60)], [0.5, 1.8, 10])


class OfAService(TuneTest):
    def test_runs_in_its_pool(self):
        self.serve(self.dir / "pool.db")
        service = espalier.Client(self.http)
        self.addCleanup(service.close)
        told = service.submit({"name": "asked", "ask_and_tell": True})
        self.assertIn("has no slots yet: tuner agent --join",
                      _run.ServiceRun("asked", service).heading({"study": told, "pool": service.pool()}))
        service.delete(service.stop("asked")["name"])
        self.agent(2)
        wait_for(lambda: service.pool()["slots"] == 2, "the agent to join")
        first, shown = self.tune([self.program()], slots=None, address=self.http)
        self.assertEqual((first.name, first.state, first.directory), ("trial", "COMPLETE", None))
        self.assertIn("trial 1 complete loss", shown)
        self.assertIn(f"study trial: 2 trials on 2 slots, in the pool at {self.http}\npage http://{self.http}/\n", shown)
        with self.assertRaisesRegex(espalier.UsageError, r"Client\(...\).logs\('trial', 0\)"):
            first.output(0)
        second, _ = self.tune(objectives.quadratic, slots=None, address=self.http, trials=1, name="named",
                              env={"PYTHONPATH": f"{ROOT / 'tests/python'}:{os.environ['PYTHONPATH']}"})
        self.assertAlmostEqual(second.best_value, (second.best_parameters["x"] - 0.3) ** 2, places=9)
        third, _ = self.tune([self.program()], slots=None, address=self.http)
        self.assertEqual(third.name, "trial-2")
        with espalier.Client(self.http) as client:
            self.assertEqual(sorted(study["name"] for study in client.studies()), ["named", "trial", "trial-2"])

    def test_nobody_answers(self):
        with self.assertRaises(espalier.UnreachableError):
            self.tune([self.program()], slots=None, address=self.unanswered_address())


if __name__ == "__main__":
    unittest.main()
