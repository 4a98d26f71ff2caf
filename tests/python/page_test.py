"""The code on the pages about Python is that of programs which run here: alone, by torchrun, by `tuner run`, and with a
service."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(__file__).resolve().parent / "page"
sys.path[:0] = [str(ROOT / "tests/docs"), str(ROOT / "tests/e2e")]
import code_blocks  # noqa: E402
from forked import output_of  # noqa: E402
from harness import BIN, LONG_S, TunerTest  # noqa: E402


class Page(TunerTest):
    def run_program(self, name, *launcher, **env):
        env = dict(os.environ, PATH=f"{BIN}{os.pathsep}{os.environ['PATH']}", OMP_NUM_THREADS="1", **env)
        done = subprocess.run([sys.executable, *launcher, PROGRAMS / name], cwd=self.dir, env=env, stdin=subprocess.DEVNULL,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONG_S)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def run_forked(self, name, **env):
        return output_of(PROGRAMS / name, cwd=self.dir, **env)

    def accuracy(self, told):
        """The number that the last line ends with."""
        return float(re.split("[ =]", told.strip().splitlines()[-1])[-1])

    def test_code_is_that_of_the_files_it_names(self):
        # Others stand in examples and tests that run elsewhere.
        for page, least in (("python", 8), ("python_training", 10), ("python_adaptdl", 2), ("python_install", 1)):
            self.assertGreaterEqual(code_blocks.check(self, f"docs/{page}.md"), least, page)

    def test_the_diffs_are_all_that_differs(self):
        diffs = 0
        for language, files, text in code_blocks.FENCE.findall((ROOT / "docs/python_training.md").read_text()):
            if language != "diff":
                continue
            diffs += 1
            for file, other in zip(files.split(), "+-"):
                shown = [line[1:] for line in text.splitlines() if not line.startswith(other)]
                program = (ROOT / file).read_text().split("from task import Net, training, validation\n")[1]
                self.assertEqual(code_blocks.lines_of("\n".join(shown)), code_blocks.lines_of(program), file)
            removed, added = ({line[1:] for line in text.splitlines() if line.startswith(sign)} - {""} for sign in "-+")
            self.assertEqual(removed & added, set(), "what stays is not shown as changed")
        self.assertEqual(diffs, 3)

    def test_loops_learn_before_and_after(self):
        for name in ("plain.py", "adaptdl_before.py", "adaptdl_after.py", "train.py"):
            with self.subTest(name):
                self.assertGreater(self.accuracy(self.run_forked(name)), 0.9)

    def test_the_loop_for_ddp_learns(self):
        launcher = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d",
                    "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1")
        self.assertGreater(self.accuracy(self.run_program("ddp.py", *launcher)), 0.9)
        self.assertTrue((self.dir / "epoch-30.pt").exists())

    def test_the_loops_of_the_other_pages_run(self):
        self.assertLess(self.accuracy(self.run_forked("five_lines.py")), 0.5)
        self.assertEqual(self.accuracy(self.run_forked("arguments.py")), 0.5)
        self.assertGreater(self.accuracy(self.run_program("best.py")), 0.8)
        self.assertTrue((self.dir / "best.pt").exists())

    def test_a_tracker_has_one_run(self):
        self.write("wandb.py", "run = None\n\n\n"
                   "def init(**options):\n    global run\n    run = options\n    print('init', options)\n\n\n"
                   "def log(values):\n    print('log', values)\n\n\n"
                   "def finish():\n    pass\n")
        told = self.run_program("tracked.py", PYTHONPATH=f"{self.dir}{os.pathsep}{os.environ['PYTHONPATH']}")
        self.assertEqual((told.count("init {"), told.count("log {")), (1, 3), told)
        self.assertIn("'id': None, 'resume': 'allow', 'config': {}}", told)

    def test_alone_it_saves_where_it_is_told_and_goes_on_from_there(self):
        self.run_forked("train.py")
        self.assertEqual(list(self.dir.rglob("step-*.pt")), [])
        kept = self.dir / "kept"
        self.run_forked("train.py", ESPALIER_CHECKPOINT_DIR=str(kept))
        # The newest two: one that waits for the disk when the next is there is not written. An epoch has 8 steps.
        before, last = sorted(int(path.stem.removeprefix("step-")) for path in kept.glob("step-*.pt"))
        self.assertEqual((len(list(kept.iterdir())), last, before % 8), (2, 240, 0))
        told = self.run_forked("train.py", ESPALIER_CHECKPOINT=str(kept / f"step-{before}.pt"))
        self.assertTrue(told.startswith(f"report step={before // 8 + 1} "), told)

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
