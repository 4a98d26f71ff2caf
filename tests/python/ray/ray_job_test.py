"""`python -m espalier.ray run` as a job that `ray job submit` hands to a real Ray cluster, which asks for its token."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import cluster

if __name__ == "__main__":
    cluster.prepare(__file__)

import espalier  # noqa: E402
import ray  # noqa: E402
from harness import PATIENCE_S, TUNER, processes, wait_for  # noqa: E402
from ray_case import NODES, RayTest  # noqa: E402

RAY = pathlib.Path(ray.__file__).parents[1] / "bin/ray"
DASHBOARD = f"http://{cluster.ADDRESS}:{cluster.DASHBOARD_PORT}"
TRIALS, STEPS = 4, 3

TRIAL = f"""
import pathlib
import espalier

trial = espalier.trial()
for step in range({STEPS}):
    trial.report(step, trial.parameters["x"] + step)
pathlib.Path(f"seen-by-{{trial.number}}").write_text(f"{{pathlib.Path.cwd()}} {{espalier.__file__}}")
print("trial", trial.number, "has ended")
"""


class Job(RayTest):
    dashboard = True

    @classmethod
    def setUpClass(cls):
        """Until the head takes jobs: Ray says that it is up long before, and waits for 10 s only."""
        super().setUpClass()
        first = [sys.executable, RAY, "job", "submit", "--address", DASHBOARD, "--", "true"]
        wait_for(lambda: subprocess.run(first, capture_output=True).returncode == 0, "the head to take jobs")

    def setUp(self):
        super().setUp()
        self.code, self.record = self.dir / "code", self.dir / "record"
        self.code.mkdir()

    def write_study(self, *command, **keys):
        """In the folder that is shipped."""
        written = pathlib.Path(self.study(command, **{"trials": TRIALS} | keys))
        (self.code / "study.json").write_text(written.read_text())

    def job(self, verb, *words, env=None):
        return self.command(sys.executable, RAY, "job", verb, "--address", DASHBOARD, *words, env=env)

    def submit(self, name, runtime_env=None):
        """Ray's own command, which follows the job and ends with it."""
        return self.job("submit", "--working-dir", self.code, "--submission-id", name, "--runtime-env-json",
                        json.dumps(runtime_env or {}), "--", sys.executable, "-m", "espalier.ray", "run",
                        "study.json", "--max-nodes", NODES, "--cpus", 2, "--dir", self.record)

    def follow(self, submitted, code=0):
        """Until the job has ended, which takes several processes that start one after the other."""
        wait_for(lambda: submitted.poll() is not None, "the job to end", 3 * PATIENCE_S)
        self.finish(submitted, code)

    def told(self, verb, name):
        asked = self.job(verb, name)
        self.finish(asked)
        return self.output(asked)

    def assert_nothing_left(self):
        services = lambda: [words for _, _, words in processes() if words[1:2] == ["serve"]]
        wait_for(lambda: not self.actors() and not self.agents() and not services(), "nothing to be left")

    # ---- tests

    def test_a_study_is_a_job_that_succeeds_and_nothing_stays(self):
        (self.code / "trial.py").write_text(TRIAL)
        self.write_study(sys.executable, "trial.py")
        submitted = self.submit("good")
        self.follow(submitted)
        self.assert_nothing_left()
        self.assertIn("succeeded", self.told("status", "good"))
        log = self.told("logs", "good")
        for text in (log, self.output(submitted)):
            self.assertRegex(text, r"best: [\d.]+ of trial \d, \{\"x\": ")
            self.assertIn(f"complete; the record is in {self.record}", text)
        self.assertEqual(len((self.record / "trials.csv").read_text().splitlines()), 1 + TRIALS * STEPS)
        for number in range(TRIALS):
            self.assertIn("/work ", (self.record / f"results/seen-by-{number}").read_text())

    def test_what_a_wheel_has_is_shipped_by_the_runtime_env(self):
        """To machines that have no Espalier of their own, by `py_modules`."""
        package = self.dir / "site/espalier"
        shutil.copytree(pathlib.Path(espalier.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(pathlib.Path(os.environ["ESPALIER_TORCH_LIBRARY"]).parent, package / "lib/torch-built")
        (package / "bin").mkdir()
        shutil.copy(TUNER, package / "bin/tuner")
        (self.code / "trial.py").write_text(f"import espalier.torch\n{TRIAL}")
        self.write_study(sys.executable, "trial.py", trials=NODES)
        without = {"PATH": os.defpath, "PYTHONPATH": str(RAY.parents[1]), "ESPALIER_TORCH_LIBRARY": ""}
        submitted = self.submit("shipped", {"py_modules": [str(package)], "env_vars": without})
        self.follow(submitted)
        self.assert_nothing_left()
        for number in range(NODES):
            self.assertIn("/py_modules_files/", (self.record / f"results/seen-by-{number}").read_text())

    def test_a_study_that_fails_is_a_job_that_has_failed(self):
        self.write_study("sh", "-c", "exit 3", max_consecutive_failures=2)
        submitted = self.submit("bad")
        self.follow(submitted, code=1)
        self.assert_nothing_left()
        self.assertIn("failed", self.told("status", "bad"))
        self.assertIn(f"failed; the record is in {self.record}", self.told("logs", "bad"))

    def test_a_job_that_is_stopped_gives_its_nodes_back_and_goes_on_as_another(self):
        go_on = self.dir / "go-on"  # the first job is not to end by itself
        self.write_study(self.resumable_trial(60, 0.2, f"until [ $step -lt 5 ] || [ -e {go_on} ]; do sleep 0.1; done"))
        submitted = self.submit("first")
        wait_for(lambda: any(map(self.taken, range(TRIALS))), "a trial to have a step", 2 * PATIENCE_S)
        self.told("stop", "first")
        self.follow(submitted)
        self.assert_nothing_left()
        self.assertIn("stopped", self.told("status", "first"))
        go_on.touch()
        self.follow(self.submit("second"))
        self.assert_nothing_left()
        trials = self.export("--db", self.record / "pool.db")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["TRIAL_COMPLETE"] * TRIALS)
        self.assertEqual([self.taken(number) for number in range(TRIALS)], [list(range(1, 61))] * TRIALS)

    def test_a_job_without_the_token_is_refused(self):
        (self.dir / "other.token").write_text("0" * 64)
        self.write_study("true")
        refused = self.job("submit", "--submission-id", "refused", "--", "true",
                           env={"RAY_AUTH_TOKEN_PATH": str(self.dir / "other.token")})
        self.finish(refused, code=1)
        self.assertRegex(self.output(refused), re.compile("authenticat|token", re.IGNORECASE))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
