"""The installed package, moved after it was installed, and a program outside the tree that uses it."""
# builds: tuner espalier_torch espalier_cuda espalier_trial_runner espalier_datasets espalier_elastic espalier_control espalier_replica_wire espalier_messages espalier_control_proto espalier_collectives espalier_kernels espalier_digests espalier_allocator espalier_base
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["ESPALIER_BUILD"])
LIBTORCH = os.environ["ESPALIER_NAMED_LIBTORCH"]
WORK = BUILD / "package_test"  # always the same folder, so that ccache knows the compilation again
PREFIX = WORK / "moved"
PATIENCE_S = 300


def run(*command, code=0, **environment):
    env = {name: value for name, value in os.environ.items() if name != "ESPALIER_LIBTORCH"}
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                          cwd=WORK, env=env | environment)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir()
        run("cmake", "--install", BUILD, "--prefix", WORK / "installed")
        (WORK / "installed").rename(PREFIX)
        shutil.copytree(HERE / "outside", WORK / "outside")

    def configure(self, folder, *definitions, **keys):
        return run("cmake", "-S", WORK / "outside", "-B", WORK / folder, "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *definitions, **keys)

    def test_installed_tuner_runs(self):
        self.assertRegex(run(PREFIX / "bin/tuner", "version"), r"\d+\.\d+\.\d+")

    def test_recorded_jobs_are_found(self):
        text = run(PREFIX / "bin/tuner", "simulate", "pollux", "workload-1", "--policy", "tiresias",
                   "--decisions", WORK / "decisions.txt")
        self.assertIn("160 jobs on 64 slots", text)

    def test_program_outside_builds_and_trains(self):
        lines = (HERE / "outside/CMakeLists.txt").read_text().splitlines()
        self.assertLessEqual(len(lines), 10)
        self.configure("build", f"-DESPALIER_LIBTORCH={LIBTORCH}")
        run("cmake", "--build", WORK / "build")
        alone = run(WORK / "build/mine", "--epochs", 1)
        self.assertRegex(alone, r"\b1\b.*\d\.\d")
        commands = json.loads((WORK / "build/compile_commands.json").read_text())
        self.assertNotIn("-W", " ".join(c["command"] for c in commands), "our warnings are not theirs")
        rules = "".join(p.read_text() for p in (WORK / "build").rglob("*.ninja"))
        self.assertFalse("torch_compile" in rules, "nor our job pools")

        study = {"name": "outside", "command": [str(WORK / "build/mine"), "--epochs", "2"],
                 "metric": {"name": "error", "direction": "minimize"}, "trials": 2,
                 "search_space": {"lr": {"_type": "uniform", "_value": [0.01, 0.2]}}}
        (WORK / "study.json").write_text(json.dumps(study))
        run(PREFIX / "bin/tuner", "run", WORK / "study.json", "--dir", WORK / "run")
        exported = json.loads(run(PREFIX / "bin/tuner", "export", "outside", "--db",
                                  WORK / "run/espalier.db", "--format", "json"))
        self.assertEqual([(t["state"], len(t["values"])) for t in exported["trials"]],
                         [("TRIAL_COMPLETE", 2)] * 2)

    def test_wrong_libtorch_is_named(self):
        text = self.configure("wrong", "-DESPALIER_LIBTORCH=/does/not/exist", code=1)
        self.assertIn("LibTorch not found in '/does/not/exist'", text)
        self.assertIn("-DESPALIER_LIBTORCH=", text)

    def test_public_headers_need_nothing_that_is_not_installed(self):
        headers = list((PREFIX / "include").rglob("*.h"))
        self.assertIn(PREFIX / "include/trial_runner/torch/trial.h", headers)
        for header in headers:
            for what in re.findall(r'#\s*include\s*[<"]([^>"]+)[>"]', header.read_text()):
                ours = (PREFIX / "include" / what).exists()
                library = re.match(r"(absl|torch|ATen|c10)/", what) or "/" not in what and "." not in what
                self.assertTrue(ours or library, f"{header} includes {what}")

    def test_package_names_no_folder_of_the_build(self):
        for file in (PREFIX / "lib/cmake/Espalier").glob("*.cmake"):
            for folder in (BUILD, WORK / "installed", HERE.parents[1]):
                text = file.read_text().replace(LIBTORCH, "")
                self.assertNotIn(str(folder) + "/", text, file.name)


# Of cmake/EspalierCuda.cmake: what would be linked.
CUDA_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(cuda CXX)
set(LibTorch_CPU_LIBRARY ${SITE}/torch/lib/libtorch_cpu.so)
include(${ROOT}/cmake/EspalierCuda.cmake)
set(_libraries "none")
if(ESPALIER_BUILD_CUDA)
  get_target_property(_libraries LibTorch::cuda INTERFACE_LINK_LIBRARIES)
endif()
file(WRITE ${CMAKE_BINARY_DIR}/linked "${_libraries}")
"""
NVCC = """#!/bin/sh
echo "Cuda compilation tools, release 13.0, V13.0.88"
"""
STUB, WHOLE = 20_000, 200_000  # bytes


class Cuda(unittest.TestCase):
    """A tree that was set up where there is no toolkit, and then is configured where there is one."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-cuda-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.site, self.toolkit = self.dir / "site", self.dir / "toolkit"
        self.write("CMakeLists.txt", CUDA_PROJECT)
        for name in ("torch/lib/libtorch_cpu.so", "torch/lib/libtorch_cuda.so", "torch/lib/libc10_cuda.so",
                     "nvidia/cu13/lib/libcudart.so.13"):
            self.library(f"site/{name}", WHOLE)
        self.library("site/nvidia/cu13/lib/libnccl.so.2", STUB)
        self.write("toolkit/bin/nvcc", NVCC).chmod(0o755)
        for name in ("cuda.h", "cuda_runtime.h"):
            self.write(f"toolkit/include/{name}", "")
        self.library("toolkit/lib64/libcudart.so", WHOLE)
        self.write("toolkit/include/nccl.h", "#define NCCL_VERSION_CODE 22809\n")

    def write(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def library(self, name, size):
        os.truncate(self.write(name, ""), size)

    def linked(self, **env):
        done = subprocess.run(["cmake", "-S", self.dir, "-B", self.dir / "build", f"-DSITE={self.site}", f"-DROOT={ROOT}",
                               f"-DCUDAToolkit_ROOT={self.toolkit}"], env=os.environ | env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        libraries = (self.dir / "build/linked").read_text()
        return re.findall(r"[^/;]+/lib/libnccl.so.2", libraries) or done.stdout

    def test_stubs_of_a_set_for_the_cpu_are_not_linked(self):
        self.assertIn("CUDA part: not built, ESPALIER_CUDA=off in the environment", self.linked(ESPALIER_CUDA="off"))
        on_cuda = {"ESPALIER_CUDA": ""}
        self.assertRegex(self.linked(**on_cuda), "CUDA part: not built, LibTorch in .* has no CUDA part .scripts/setup.sh")
        self.library("site/nvidia/nccl/lib/libnccl.so.2", WHOLE)  # beside the stub, which is found first
        self.assertEqual(self.linked(**on_cuda), ["nccl/lib/libnccl.so.2"])
        # Nor does a toolkit that has gone keep another one from being found.
        self.toolkit = self.toolkit.rename(self.dir / "newer")
        self.assertEqual(self.linked(**on_cuda), ["nccl/lib/libnccl.so.2"])

    def test_stubs_are_removed_and_what_packages_have_put_there_stays(self):
        self.write("site/nvidia_cuda_runtime-13.0.dist-info/METADATA", "Name: nvidia-cuda-runtime\nVersion: 13.0\n")
        self.write("site/nvidia_cuda_runtime-13.0.dist-info/RECORD", "nvidia/cu13/lib/libcudart.so.13,,\n")
        done = subprocess.run([sys.executable, ROOT / "scripts/torch_stubs.py", "--remove", self.site], text=True,
                              capture_output=True)
        self.assertEqual((done.returncode, done.stdout), (0, "torch_stubs: 1 libraries removed\n"), done.stderr)
        self.assertEqual([path.name for path in self.site.glob("nvidia/cu13/lib/*")], ["libcudart.so.13"])


if __name__ == "__main__":
    unittest.main()
