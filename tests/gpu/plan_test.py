"""The runner of the steps for GPU machines: what becomes of a step that fails, ends, hangs or says nothing; and those
steps that need no GPU."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

STEPS = """
import os, subprocess, sys, time
sys.path.insert(0, {folder!r})
import plan
plan.PARTS.clear()

@plan.step("test", 20)
def passes():
    print("working")
    return {{"answer": 42}}

@plan.step("test", 20)
def is_skipped():
    plan.binary("no_such_program")

@plan.step("test", 20)
def fails():
    assert 1 == 2, "one is not two"

@plan.step("test", 20)
def crashes():
    os._exit(3)

@plan.step("test", 1)
def hangs():
    child = subprocess.Popen(["sleep", "600"])
    open({pid!r}, "w").write(str(child.pid))
    time.sleep(600)

@plan.step("test", 20)
def comes_last():
    pass

@plan.step("short", 20)
def takes_all_its_time():
    time.sleep(600)

@plan.step("short", 20)
def has_no_time_left():
    pass

sys.exit(plan.main())
"""


BUILD = pathlib.Path(os.environ["ESPALIER_BIN"]).parent


def torch_python():
    """The interpreter whose PyTorch the programs are linked with."""
    linked = subprocess.run(["ldd", BUILD / "bin" / "resnet18"], text=True, capture_output=True, check=True).stdout
    torch = pathlib.Path(next(line.split()[2] for line in linked.splitlines() if "libtorch_cpu.so" in line)).parent
    return torch.parents[4] / "bin" / "python3"


class Runner(unittest.TestCase):
    def run_plan(self, script, *arguments):
        done = subprocess.run([sys.executable, "-B", str(script), *arguments, "--out", str(self.folder / "out")], text=True,
                              capture_output=True, check=False, cwd=self.folder,
                              env=os.environ | {"ESPALIER_TORCH_PYTHON": str(torch_python())})
        return done, json.loads(done.stdout.splitlines()[-1]) if done.stdout else None

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_each_step_ends_somehow_and_the_next_is_run(self):
        script = self.folder / "steps.py"
        pid = self.folder / "pid"
        script.write_text(STEPS.format(folder=str(HERE), pid=str(pid)))
        done, result = self.run_plan(script, "--device", "cpu", "--part", "test")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([result["passed"], result["failed"], result["skipped"]], [2, 3, 1])
        steps = {step["step"]: step for step in result["steps"]}
        self.assertEqual(steps["passes"]["figures"], {"answer": 42})
        self.assertIn("no_such_program was not built", steps["is_skipped"]["reason"])
        self.assertIn("one is not two", steps["fails"]["reason"])
        self.assertIn("ended with 3", steps["crashes"]["reason"])
        self.assertIn("not done within 1 s", steps["hangs"]["reason"])
        self.assertEqual(steps["comes_last"]["result"], "passed")
        self.assertEqual(json.loads((self.folder / "out" / "results.json").read_text()), result["steps"])
        self.assertIn("working", (self.folder / "out" / "test-passes.log").read_text())
        end = time.monotonic() + 20
        while pathlib.Path(f"/proc/{pid.read_text()}/cmdline").exists() and \
                b"sleep" in pathlib.Path(f"/proc/{pid.read_text()}/cmdline").read_bytes():
            self.assertLess(time.monotonic(), end, "what the step had started is still there")

    def test_a_part_ends_in_time_whatever_its_steps_take(self):
        script = self.folder / "steps.py"
        script.write_text(STEPS.format(folder=str(HERE), pid=str(self.folder / "pid"))
                          .replace("plan.PARTS.clear()", "plan.PARTS.clear()\nplan.PART_LIMIT_S = 2"))
        _, result = self.run_plan(script, "--device", "cpu", "--part", "short")
        steps = {step["step"]: step for step in result["steps"]}
        self.assertIn("not done within 2 s", steps["takes_all_its_time"]["reason"])
        self.assertEqual(steps["has_no_time_left"]["result"], "skipped")
        self.assertIn("the 2 s of its part are over", steps["has_no_time_left"]["reason"])

    def test_what_needs_no_gpu_passes_here(self):
        steps = ["libraries", "device_test", "gradient_buckets", "state_transfer", "checkpoint", "a_trial", "nccl_on_one_gpu",
                 "checkpoint_pause", "losses"]
        done, result = self.run_plan(HERE / "plan.py", "--device", "cpu", *(f"--only={step}" for step in steps))
        results = {step["step"]: step["result"] for step in result["steps"]}
        self.assertEqual(results, {step: "passed" for step in steps} | {"nccl_on_one_gpu": "skipped"}, done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_programs_in_python_pass_here(self):
        done, result = self.run_plan(HERE / "plan.py", "--device", "cpu", "--part", "python")
        results = {step["step"]: step["result"] for step in result["steps"]}
        self.assertEqual(results, {step: "passed" for step in (
            "python_exact", "python_overhead", "python_trial", "python_resize", "python_imports", "python_zygote")},
            f"{done.stdout}{self.logs()}")
        figures = {step["step"]: step["figures"] for step in result["steps"]}
        self.assertEqual(figures["python_exact"], {"SGD_difference": 0, "AdamW_difference": 0})
        self.assertGreater(figures["python_zygote"]["forked"], 0)

    def logs(self):
        return "".join(f"\n== {path.name}\n{path.read_text()[-2000:]}" for path in sorted((self.folder / "out").glob("*.log")))

    def test_an_unknown_step_is_refused_by_name(self):
        done, _ = self.run_plan(HERE / "plan.py", "--only", "overhed")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--only overhed: want one of a_trial", done.stderr)


class Bundle(unittest.TestCase):
    """The folder for another machine, of the programs of this build, in a place where nothing else of the project is."""

    def make(self, *arguments):
        return subprocess.run([ROOT / "scripts" / "gpu.sh", "bundle", *arguments, *([BUILD] if len(arguments) == 1 else [])],
                              text=True, capture_output=True, check=False)

    def test_a_folder_of_somebody_else_is_left_alone(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "thesis").write_text("years of work")
        for given, why in ((folder, "is not empty, and was not made by bundle"), (folder / "thesis", "is no folder")):
            made = self.make(given)
            self.assertEqual(made.returncode, 1)
            self.assertIn(why, made.stderr)
        self.assertEqual((folder / "thesis").read_text(), "years of work")
        made = self.make(folder / "new", folder)
        self.assertIn("is no build of the GPU part", made.stderr)
        self.assertFalse((folder / "new").exists())

    def test_bundle_has_a_help_text(self):
        said = subprocess.run([ROOT / "scripts" / "gpu.sh", "bundle", "--help"], text=True, capture_output=True, check=False)
        self.assertEqual(said.returncode, 0)
        self.assertIn("usage: scripts/gpu.sh bundle", said.stdout)

    def test_a_bare_folder_runs_wherever_it_is_carried(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for _ in range(2):  # once more in the place of the first
            made = self.make(folder / "bundle")
            self.assertEqual(made.returncode, 0, made.stderr)
        bare = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder), "PYTHON": str(torch_python())}
        elsewhere = folder / "elsewhere"
        (folder / "bundle").rename(elsewhere)
        script = elsewhere / "scripts" / "gpu.sh"

        check = subprocess.run([script, "check"], env=bare, cwd=folder, text=True, capture_output=True, check=False)
        said = dict(line.split(maxsplit=1) for line in check.stdout.splitlines())
        self.assertEqual(said["libraries"], "all found", check.stdout)
        has_driver = os.path.exists("/dev/nvidiactl")
        self.assertEqual(check.returncode, 0 if has_driver else 1, check.stdout)
        self.assertEqual(said["driver"].startswith("none"), not has_driver)

        # Single programs, and a service with an agent and trials in C++ and in Python.
        steps = ["environment", "libraries", "device_test", "a_trial", "python_exact", "python_trial", "python_imports"]
        run = subprocess.run([script, "run", "--device", "cpu", "--out", folder / "results", *(f"--only={step}" for step in steps)],
                             env=bare, cwd=folder, text=True, capture_output=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertEqual(json.loads(run.stdout.splitlines()[-1])["passed"], len(steps))


if __name__ == "__main__":
    unittest.main()
