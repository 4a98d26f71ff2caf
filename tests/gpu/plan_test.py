"""The runner of the steps for GPU machines: what becomes of a step that fails, ends, hangs or says nothing; and those
steps that need no GPU."""
import contextlib
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

@plan.step("test", 100)
def passes():
    print("working")
    return {{"answer": 42}}

@plan.step("test", 100)
def is_skipped():
    plan.binary("no_such_program")

@plan.step("test", 100)
def fails():
    assert 1 == 2, "one is not two"

@plan.step("test", 100)
def crashes():
    os._exit(3)

@plan.step("test", 25)
def hangs():
    child = subprocess.Popen(["sleep", "600"])
    open({pid!r}, "w").write(str(child.pid))
    time.sleep(600)

@plan.step("test", 100)
def comes_last():
    pass

@plan.step("judged", 100, bars={{"ratio": plan.at_most(1.02), "rate_*": plan.at_least(2)}})
def measures():
    return {{"ratio": 1.05, "rate_a": 2.5, "rate_b": 1.5}}

@plan.step("judged", 100, bars={{"other": plan.at_most(1)}})
def measures_nothing():
    raise AssertionError("it is broken")

@plan.step("judged", 100)
def comes_after_missed_bars():
    pass

@plan.step("suites", 100)
def says_its_device():
    return plan.google_test("suite", "there")

@plan.step("suites", 100)
def says_nothing():
    return plan.google_test("suite", "")

@plan.step("suites", 100)
def says_another():
    return plan.google_test("suite", "elsewhere")

@plan.step("suites", 100)
def is_of_the_host():
    return plan.google_test("suite", "", on_host=("Net*",))

@plan.step("suites", 100)
def has_replicas_that_say_it():
    return plan.google_test("suite", "", replicas=True)

@plan.step("suites", 100)
def has_replicas_elsewhere():
    return plan.google_test("suite", "elsewhere", replicas=True)

@plan.step("short", 20)
def takes_all_its_time():
    time.sleep(600)

@plan.step("short", 20)
def has_no_time_left():
    pass

sys.exit(plan.main())
"""

# A test program that has one test, which records the device that it is told of; and says that a replica was on it.
SUITE = """#!/usr/bin/env python3
import json, os, sys
where = {"there": os.environ["ESPALIER_TEST_DEVICE"] + ":0", "elsewhere": "meta", "": None}[sys.argv[1]]
with open(sys.argv[2].removeprefix("--gtest_output=json:"), "w") as record:
    test = {"name": "Learns", "result": "COMPLETED"} | ({"device": where} if where else {})
    json.dump({"testsuites": [{"name": "Net", "testsuite": [test]}]}, record)
print("on", where or os.environ["ESPALIER_TEST_DEVICE"])
"""
# As nvidia-smi: it knows one process.
NVIDIA_SMI = """#!/bin/bash
case "$*" in
  *compute-apps*) echo "4711, 900" ;;
  *memory.used*) echo 5000 ;;
  -q) printf '    Compute Mode              : Default\\n    MIG Mode\\n        Current               : Disabled\\n    Bus : 1\\n' ;;
esac
"""
# As compute-sanitizer: runs a program, and ends with a code of its own if that failed.
SANITIZER = """#!/bin/bash
test "$1 $2" = "--error-exitcode 9" && shift 2 && "$@" && echo "ERROR SUMMARY: 0 errors" || exit 9
"""


BUILD = pathlib.Path(os.environ["ESPALIER_BIN"]).parent
# Figures for which there is no memory here, or which would take too long.
ONLY_ON_A_GPU = ("device_mb_more", "convnet_ratio", "resnet18_ratio")


def torch_python():
    """The interpreter whose PyTorch the programs are linked with."""
    linked = subprocess.run(["ldd", BUILD / "bin" / "resnet18"], text=True, capture_output=True, check=True).stdout
    torch = pathlib.Path(next(line.split()[2] for line in linked.splitlines() if "libtorch_cpu.so" in line)).parent
    return torch.parents[4] / "bin" / "python3"


class Runner(unittest.TestCase):
    def run_plan(self, script, *arguments, **variables):
        done = subprocess.run([sys.executable, "-B", str(script), *arguments, "--out", str(self.folder / "out")], text=True,
                              capture_output=True, check=False, cwd=self.folder,
                              env=os.environ | {"ESPALIER_TORCH_PYTHON": str(torch_python())} | variables)
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
        self.assertIn("not done within 25 s", steps["hangs"]["reason"])
        self.assertEqual(steps["comes_last"]["result"], "passed")
        self.assertEqual(json.loads((self.folder / "out" / "results.json").read_text()), result["steps"])
        self.assertIn("working", (self.folder / "out" / "test-passes.log").read_text())
        end, command = time.monotonic() + 60, pathlib.Path(f"/proc/{pid.read_text()}/cmdline")
        with contextlib.suppress(OSError):  # it is gone
            while b"sleep" in command.read_bytes():
                self.assertLess(time.monotonic(), end, "what the step had started is still there")
                time.sleep(0.02)

    def test_a_part_ends_in_time_whatever_its_steps_take(self):
        script = self.folder / "steps.py"
        script.write_text(STEPS.format(folder=str(HERE), pid=str(self.folder / "pid"))
                          .replace("plan.PARTS.clear()", "plan.PARTS.clear()\nplan.PART_LIMIT_S = 2"))
        _, result = self.run_plan(script, "--device", "cpu", "--part", "short")
        steps = {step["step"]: step for step in result["steps"]}
        self.assertIn("not done within 2 s", steps["takes_all_its_time"]["reason"])
        self.assertEqual(steps["has_no_time_left"]["result"], "skipped")
        self.assertIn("the 2 s of its part are over", steps["has_no_time_left"]["reason"])

    def programs(self, folder, **texts):
        for name, text in texts.items():
            path = folder / name.replace("_", "-")
            path.write_text(text)
            path.chmod(0o755)

    def test_bars_are_judged_on_a_gpu_and_stop_nothing(self):
        script = self.folder / "steps.py"
        script.write_text(STEPS.format(folder=str(HERE), pid=""))
        for device, met in (("cuda", {"ratio": False, "rate_a": True, "rate_b": False}),
                            ("cpu", dict.fromkeys(("ratio", "rate_a", "rate_b"), "not judged"))):
            with self.subTest(device):
                done, result = self.run_plan(script, "--device", device, "--part", "judged")
                first, second, last = result["steps"]
                self.assertEqual({bar["figure"]: bar["met"] for bar in first["bars"]}, met)
                self.assertEqual(first["bars"][0] | {"met": ""}, {"figure": "ratio", "value": 1.05, "bar": "<= 1.02", "met": ""})
                self.assertEqual([first["result"], second["result"], last["result"]], ["passed", "failed", "passed"])
                missed = [(bar["step"], bar["figure"], bar["bar"]) for bar in result["bars"]["missed"]]
                if device == "cpu":
                    self.assertEqual((missed, result["bars"]["not_measured"], result["bars"]["met"]), ([], [], 0))
                    continue
                self.assertEqual(missed, [("judged/measures", "ratio", "<= 1.02"), ("judged/measures", "rate_b", ">= 2")])
                self.assertEqual([bar["step"] for bar in result["bars"]["not_measured"]], ["judged/measures_nothing"])
                self.assertEqual(result["bars"]["met"], 1)
                self.assertIn("missed    judged/measures  ratio 1.05: the bar is <= 1.02", done.stdout)

    def test_a_suite_that_does_not_say_its_device_fails(self):
        script = self.folder / "steps.py"
        script.write_text(STEPS.format(folder=str(HERE), pid=""))
        self.programs(self.folder, suite=SUITE)
        for device in ("cpu", "cuda"):
            _, result = self.run_plan(script, "--device", device, "--part", "suites", ESPALIER_BIN=str(self.folder))
            steps = {step["step"]: step for step in result["steps"]}
            self.assertEqual({name: step["result"] for name, step in steps.items()}, {
                "says_its_device": "passed", "says_nothing": "failed", "says_another": "failed", "is_of_the_host": "passed",
                "has_replicas_that_say_it": "passed", "has_replicas_elsewhere": "failed"})
            self.assertIn(f"Net is to be on {device}, and its tests say that they were on: nothing", steps["says_nothing"]["reason"])
            self.assertIn("say that they were on: meta", steps["says_another"]["reason"])

    def test_memory_and_modes_are_those_that_nvidia_smi_tells(self):
        self.programs(self.folder, nvidia_smi=NVIDIA_SMI)
        done = subprocess.run([sys.executable, "-B", "-c", "import group_steps, json, machine_steps\n"
                               "memory = [group_steps.device_memory_mb(pid) for pid in (4711, 1)]\n"
                               "print(json.dumps([memory, machine_steps.modes()]))"], cwd=HERE, capture_output=True, text=True,
                              check=True, env=os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}", "ESPALIER_TEST_DEVICE": "cuda"})
        memory, modes = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(memory, [900, 5000], "of the process, and of the whole GPU where it is not known")
        self.assertEqual(modes, ["Compute Mode : Default", "MIG Mode Current : Disabled"])

    def test_the_limits_of_a_part_fit_into_it(self):
        done = subprocess.run([sys.executable, "-B", "-c", "import json, plan\n"
                               "print(json.dumps({part: sum(s.limit_s for s in steps.values()) for part, steps in plan.PARTS.items()}),"
                               " plan.PART_LIMIT_S)"], cwd=HERE, capture_output=True, text=True, check=True)
        parts, limit_s = done.stdout.rsplit(maxsplit=1)
        for part, seconds in json.loads(parts).items():
            self.assertLessEqual(seconds, int(limit_s), f"the steps of {part}")

    def run_here(self, *steps, needs_gpu=(), **variables):
        done, result = self.run_plan(HERE / "plan.py", "--device", "cpu", "--patience=5",
                                     *(f"--only={step}" for step in (*steps, *needs_gpu)), **variables)
        results = {step["step"]: step["result"] for step in result["steps"]}
        self.assertEqual(results, dict.fromkeys(steps, "passed") | dict.fromkeys(needs_gpu, "skipped"),
                         f"{done.stdout}{self.logs()}")
        self.assertEqual(done.returncode, 0)
        for step in result["steps"]:
            for bar in step.get("bars", ()):
                self.assertEqual(bar["met"], "not judged")
                if step["result"] == "passed" and bar["figure"] not in ONLY_ON_A_GPU:
                    self.assertIsNotNone(bar["value"], f"no figure of {step['step']} is {bar['figure']}")
        return {step["step"]: step.get("figures") for step in result["steps"]}

    # Steps that are not here are run by the bundle below.
    def test_what_works_without_a_gpu(self):
        self.run_here("gradient_buckets", "calls", "two_shares", "nccl_sums", "optimizer_steps", "state_transfer", "checkpoint",
                      needs_gpu=["nccl_on_one_gpu"])

    def test_figures_without_a_gpu(self):
        self.run_here("overhead_mlp_128", "beside_pytorch", "resize", "checkpoint_pause", "state_transfer_rate",
                      needs_gpu=["gradient_kernel", "overhead_resnet18_64"])

    def test_groups_without_a_gpu(self):
        self.programs(self.folder, compute_sanitizer=SANITIZER)
        self.run_here("losses", "killed_while_forming", "stopped_replica", "memory_of_a_share", "compute_sanitizer",
                      PATH=f"{self.folder}:{os.environ['PATH']}")

    def test_libraries_and_peers_without_a_gpu(self):
        # The others import as much again; tests of the integrations and `scripts/bench.sh python_resize` have the like.
        site = ROOT / ".deps" / "integrations" / "site"
        self.run_here("scaled", "lightning", "ddp", needs_gpu=["compiled"], PYTHONPATH=str(site))

    def test_programs_in_python_pass_here(self):
        figures = self.run_here("python_overhead", "python_resize", "python_zygote")
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
        elsewhere = folder / "another machine"
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
        run = subprocess.run([script, "run", "--device", "cpu", "--patience=5", "--out", folder / "results",
                              *(f"--only={step}" for step in steps)], env=bare, cwd=folder, text=True, capture_output=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        result = json.loads(run.stdout.splitlines()[-1])
        self.assertEqual(result["passed"], len(steps))
        exact = next(step for step in result["steps"] if step["step"] == "python_exact")
        self.assertEqual(exact["figures"], {"SGD_difference": 0, "AdamW_difference": 0})


if __name__ == "__main__":
    unittest.main()
