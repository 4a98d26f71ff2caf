"""The code in docs/python.md is that of programs which run here: alone, by `tuner run`, and with a service."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(__file__).resolve().parent / "page"
sys.path[:0] = [str(ROOT / "tests/docs"), str(ROOT / "tests/e2e")]
import code_blocks  # noqa: E402
from harness import BIN, TunerTest  # noqa: E402


class Page(TunerTest):
    def run_program(self, name, **env):
        env = dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", OMP_NUM_THREADS="1", **env)
        done = subprocess.run([sys.executable, PROGRAMS / name], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_code_is_that_of_the_files_it_names(self):
        # The others stand in examples and tests that run elsewhere.
        self.assertGreater(code_blocks.check(self, "docs/python.md"), len(list(PROGRAMS.iterdir())))

    def test_the_loop_learns(self):
        last = self.run_program("train.py").strip().splitlines()[-1]
        self.assertGreater(float(last.split("=")[-1]), 0.9, last)

    def test_a_study_comes_to_its_result(self):
        told = self.run_program("studies.py")
        self.assertIn("trial 3 ", told)
        self.assertRegex(told, r"\{'lr': 0\.\d+\}\n")
        self.assertIn("[4 rows x 10 columns]", told)

    def test_a_service_runs_a_study(self):
        self.serve(self.dir / "pool.db")
        self.agent(2)
        trial = self.write("trial.sh", '#!/bin/sh\ntuner tell --step 1 --value "$ESPALIER_PARAM_LR"\n', 0o755)
        spec = json.loads(pathlib.Path(self.study([trial], name="mine", trials=2)).read_text())
        self.write("study.json", {**spec, "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}}})
        told = self.run_program("service.py", ESPALIER_HTTP=self.http)
        self.assertIn("1 TRIAL_COMPLETE {'lr': 0.", told)


if __name__ == "__main__":
    unittest.main()
