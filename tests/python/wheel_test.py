"""The wheel of this build, installed into a fresh virtual environment and used from there."""
# builds: tuner espalier_torch espalier_cuda
import importlib.metadata
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["ESPALIER_BUILD"]
PATIENCE_S = 240
MOST_MB = 20

# Grows while it trains, and goes on until it has: the more replicas, the fewer of the batch's samples wait in each.
ELASTIC = """
import time
import torch
from torch.utils.data import TensorDataset
import espalier
import espalier.torch as adl

trial = espalier.trial()
x = torch.randn(2048, 8, generator=torch.Generator().manual_seed(1))
y = x.sum(1, keepdim=True)
net = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(net.parameters(), trial.get("lr", 0.1))
model = adl.AdaptiveDataParallel(net, optimizer)
loader = adl.AdaptiveDataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
for epoch in adl.remaining_epochs_until(100_000):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        time.sleep(len(inputs) * 0.0005)
    trial.report(epoch + 1, (net.weight - 1).abs().max().item())
    if model.replicas == 2:
        break
"""

# Keeps a slot until the one that is meant has trained, as tests/e2e/harness.py has it.
NEIGHBOUR = """if [ "$ESPALIER_TRIAL_NUMBER" = 1 ]; then exec python train.py; fi
until ls elastic/trials/elastic/trial-1/checkpoints/step-*.pt >/dev/null 2>&1; do sleep 0.1; done
tuner tell --final --value 0.5
"""

TUNE = """
import espalier
result = espalier.tune("sh told.sh", {"lr": espalier.space.uniform(0, 1)}, trials=2, slots=2, sampler="random")
print(result.state, len(result.trials), [result.study["metric"], *result.best_parameters])
"""

# As a replica with a GPU does; prints the files that then are in the process. No GPU is needed to load it.
LOAD_ALL = """
import ctypes, os, re, torch
from espalier import _library
_library.Library()
part = _library.find(torch.__version__).parent / "libespalier_cuda.so"
if part.exists() and torch.version.cuda:
    ctypes.CDLL(str(part), os.RTLD_NOW | os.RTLD_GLOBAL).EspalierCudaLibrary
print(*sorted(set(re.findall(r"/.*$", open("/proc/self/maps").read(), re.M))), sep="\\n")
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-wheel-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        environment = cls.dir / "env"
        cls.bin = environment / "bin"
        # Nothing leads back to the tree but torch's folder.
        cls.env = {"PATH": f"{cls.bin}:/usr/bin:/bin", "HOME": str(cls.dir), "OMP_NUM_THREADS": "1"}
        printed = cls.run_command(ROOT / "scripts/wheel.sh", "--to", cls.dir / "dist", BUILD, env=os.environ)
        cls.alias, cls.wheel = map(pathlib.Path, printed.splitlines()[-2:])
        cls.run_command(sys.executable, "-m", "venv", environment)
        cls.site = next(environment.glob("lib/python3*/site-packages"))
        torch = importlib.metadata.distribution("torch").locate_file("")
        (cls.site / "torch.pth").write_text(f"{torch}\n")
        cls.run_command(cls.bin / "pip", "install", "--quiet", "--no-deps", "--no-index", cls.wheel, cls.alias)

    @classmethod
    def run_command(cls, *command, code=0, **keys):
        keys.setdefault("env", cls.env)
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True, cwd=cls.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S, **keys)
        if done.returncode != code:
            raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def run_study(self, name, command, **keys):
        """To its end, by the wheel's tuner on two slots; returns its trials."""
        study = {"name": name, "command": command, "metric": {"name": "error", "direction": "minimize"},
                 "search_space": {"lr": {"_type": "uniform", "_value": [0.05, 0.1]}}, "sampler": "random", **keys}
        (self.dir / f"{name}.json").write_text(json.dumps(study))
        told = self.run_command("tuner", "run", f"{name}.json", "--dir", name, "--slots", 2)
        exported = self.run_command("tuner", "export", name, "--db", f"{name}/espalier.db", "--format", "json")
        logs = [p.read_text() for p in (self.dir / name).rglob("replica-*.log")]
        trials = json.loads(exported)["trials"]
        self.assertEqual({trial["state"] for trial in trials}, {"TRIAL_COMPLETE"}, "\n".join([told, *logs]))
        return trials

    def elf_files(self):
        for path in self.site.glob("espalier*/**/*"):
            if path.is_file() and path.read_bytes()[:4] == b"\x7fELF":
                yield path

    # ---- what is in it

    def test_is_one_for_every_python(self):
        self.assertRegex(self.wheel.name, r"^espalier_tuner-\d+\.\d+\.\d+-py3-none-manylinux_2_34_x86_64\.whl$")
        self.assertLess(self.wheel.stat().st_size / 1e6, MOST_MB)

    def test_has_the_adapters_and_names_what_they_need(self):
        names = set(zipfile.ZipFile(self.wheel).namelist())
        for folder, package in (("adapters/optuna/python", "espalier_optuna"), ("adapters/nni", "espalier_nni"),
                                ("python", "espalier"), ("adapters/nni", "adl")):
            files = [p.relative_to(ROOT / folder).as_posix() for p in (ROOT / folder / package).rglob("*.[pj][ys]")]
            self.assertTrue(files)
            self.assertEqual(set(files) - names, set())
        self.assertIn("espalier/py.typed", names)
        wanted = next(importlib.metadata.distributions(name="espalier-tuner", path=[str(self.site)])).requires
        self.assertFalse([line for line in wanted if line.startswith("torch") and "extra" not in line], wanted)
        self.assertTrue([line for line in wanted if re.fullmatch(r"torch<2\.\d+,>=2\.\d+ *; extra == .torch.", line)], wanted)
        self.assertTrue([line for line in wanted if re.fullmatch(r"cloudpickle[^;]*", line)], wanted)
        self.assertTrue([line for line in wanted if re.fullmatch(r"pandas *; extra == .notebook.", line)], wanted)
        for folder, extra in (("adapters/optuna/python", "optuna"), ("adapters/nni", "nni")):
            alone = re.search(r"^dependencies = (\[.*\])$", (ROOT / folder / "pyproject.toml").read_text(), re.M)[1]
            self.assertEqual([line.split(";")[0].strip() for line in wanted if f"'{extra}'" in line.replace('"', "'")],
                             json.loads(alone), "as its package alone asks for")

    def test_brings_its_libraries_and_names_no_folder_of_the_build(self):
        found = list(self.elf_files())
        self.assertGreater(len(found), 20)
        for path in found:
            listed = self.run_command("readelf", "--dynamic", "--wide", path)
            for line in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", listed):
                for folder in line.split(":"):
                    self.assertRegex(folder, r"^\$ORIGIN(/|$)", path)
        for line in self.run_command("ldd", self.site / "espalier/bin/tuner").splitlines():
            name, _, where = line.strip().partition(" => ")
            if where and not re.match(r"lib(c|m|gcc_s|stdc\+\+|pthread|dl|rt|z|resolv)\.so", name):
                self.assertIn(str(self.site), where)

    def test_asks_for_no_symbol_that_its_name_does_not_promise(self):
        """Of manylinux_2_34: what glibc 2.34 and GCC 11 have, as Rocky 9 and Ubuntu 22.04 do."""
        newest = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}
        waits = 0
        for path in self.elf_files():
            listed = self.run_command("readelf", "--version-info", "--dyn-syms", "--wide", path)
            waits += "condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11" in listed
            for of, version in set(re.findall(r"Name: (GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+) ", listed)):
                self.assertLessEqual(tuple(map(int, version.split("."))), newest[of], path)
        self.assertGreaterEqual(waits, 3, "tuner, libespalier_torch.so and libraries of Debian's")

    def test_has_the_licenses_of_what_it_brings(self):
        licenses = {p.name for p in (self.site / "espalier/share/espalier/licenses").iterdir()}
        of_headers = {"nlohmann-json3-dev", "rapidjson-dev", "libcli11-dev", "libeigen3-dev", "libgloo-dev"}
        of_pages = {"node-react", "node-react-dom", "node-d3-zoom"}
        of_tables = {"sobol_directions.LICENSE"}
        self.assertTrue({"libsqlite3-0", "libssl3", "libfmt9"} | of_headers | of_pages | of_tables <= licenses, licenses)

    def test_has_the_pages_that_help_texts_name(self):
        pages = self.site / "espalier/share/espalier"
        for page in ("docs/clusters.md", "docs/http.md", "docs/openapi.json", "tuner/study_file/README.md"):
            self.assertEqual((pages / page).read_text(), (ROOT / page).read_text())

    # ---- what it does

    def test_tuner_is_of_the_same_version(self):
        version = next(importlib.metadata.distributions(name="espalier-tuner", path=[str(self.site)])).version
        self.assertIn(version, self.run_command("tuner", "version").split())
        told = self.run_command("python", "-c", "import espalier; print(espalier.__version__)")
        self.assertEqual(told.strip(), version)

    def test_library_and_cuda_part_load_with_the_libraries_of_the_wheel(self):
        loaded = self.run_command("python", "-c", LOAD_ALL).splitlines()
        built = json.loads(pathlib.Path(BUILD, "lib/libespalier_torch.json").read_text())["torch"]
        libraries = self.site / f"espalier/lib/torch-{built.rpartition('.')[0]}"
        self.assertIn(str(libraries / "libespalier_torch.so"), loaded)
        ours = [path for path in loaded if re.search("espalier|absl|protobuf", path.rsplit("/", 1)[-1])]
        self.assertEqual([path for path in ours if not path.startswith(str(self.site))], [])
        self.assertEqual((libraries / "libespalier_cuda.so").exists(),
                         pathlib.Path(BUILD, "lib/libespalier_cuda.so").exists())

    def test_tuner_finds_its_recorded_jobs(self):
        told = self.run_command("tuner", "simulate", "pollux", "workload-1", "--policy", "tiresias")
        self.assertIn("160 jobs on 64 slots", told)

    def test_it_may_be_moved(self):
        moved = self.dir / "moved"
        moved.mkdir()
        for folder in ("espalier", "espalier_tuner.libs"):
            shutil.copytree(self.site / folder, moved / folder)
        self.assertRegex(self.run_command(moved / "espalier/bin/tuner", "version"), r"\d+\.\d+\.\d+")
        where = self.run_command("python", "-c", "import espalier.torch; espalier.trial(); print(espalier.__file__)",
                                 env=self.env | {"PYTHONPATH": str(moved)})
        self.assertIn(str(moved), where)

    def needed(self, extra):
        """What an extra asks for beside torch, which is there, as a shell takes it: no index has the wheel whose extra it is."""
        wanted = next(importlib.metadata.distributions(name="espalier-tuner", path=[str(self.site)])).requires
        return " ".join(shlex.quote(line.split(";")[0].strip()) for line in wanted
                        if f"'{extra}'" in line.replace('"', "'") and not line.startswith("torch<"))

    def test_what_an_extra_brings_is_named_where_it_is_missing(self):
        for module, extra in (("espalier_optuna", "optuna"), ("espalier.optuna", "optuna"),
                              ("espalier.integrations.transformers", "transformers"),
                              ("espalier.integrations.lightning", "lightning")):
            self.assertIn(f"pip install {self.needed(extra)}", self.run_command("python", "-c", f"import {module}", code=1))
        (self.dir / "old.yml").write_text("trial: {}\n")
        self.assertIn(f"pip install {self.needed('nni')}", self.run_command("espalier-nni", "convert", "old.yml", code=1))

    def test_a_study_from_python_finds_the_wheels_tuner(self):
        (self.dir / "told.sh").write_text('#!/bin/sh\ntuner tell --step 1 --value "$ESPALIER_PARAM_LR"\n')
        told = self.run_command(self.bin / "python", "-c", TUNE, env=self.env | {"PATH": "/usr/bin:/bin"})
        self.assertIn("COMPLETE 2 ['value', 'lr']", told)

    def test_a_command_trial_calls_tuner(self):
        script = self.dir / "plain.sh"
        script.write_text('#!/bin/sh\ntuner tell --step 1 --value "$ESPALIER_PARAM_LR"\n')
        script.chmod(0o755)
        for trial in self.run_study("plain", ["./plain.sh"], trials=2):
            self.assertEqual(len(trial["values"]), 1)

    def test_a_program_for_adaptdl_runs_by_its_own_imports(self):
        self.assertRegex(self.alias.name, r"^espalier_adaptdl-\d+\.\d+\.\d+-py3-none-any\.whl$")
        told = self.run_command("python", "-c", "import adaptdl; print(adaptdl.__file__)")
        self.assertEqual(told.strip(), str(self.site / "adaptdl/__init__.py"))
        shutil.copy(ROOT / "examples/python_adaptdl/linear_regression.py", self.dir)
        _, bias, _, weight = self.run_command("python", "linear_regression.py").split()[-4:]
        self.assertAlmostEqual(float(bias), 3, delta=0.2)
        self.assertAlmostEqual(float(weight), 4, delta=0.2)
        own, = importlib.metadata.distributions(name="espalier-tuner", path=[str(self.site)])
        alias, = importlib.metadata.distributions(name="espalier-adaptdl", path=[str(self.site)])
        self.assertEqual(alias.version, own.version)
        self.assertIsNone(alias.requires, "pip would fetch another project by the name espalier")

    def test_the_alias_alone_says_what_it_needs(self):
        for stranger in (False, True):
            alone = self.dir / f"alone_{stranger}"
            shutil.copytree(self.site / "adaptdl", alone / "adaptdl")
            if stranger:  # the project that an index has
                (alone / "espalier").mkdir()
                (alone / "espalier/__init__.py").touch()
            told = self.run_command(sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(alone)!r}); import adaptdl",
                                    code=1)
            self.assertIn("adaptdl is Espalier's here, and needs its wheel: pip install espalier_tuner-*.whl", told)

    def test_an_elastic_trial_grows(self):
        (self.dir / "train.py").write_text(ELASTIC)
        (self.dir / "neighbour.sh").write_text(NEIGHBOUR)
        _, trial = self.run_study("elastic", ["sh", "neighbour.sh"], trials=2)
        self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, len(trial["values"]) + 1)))
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in trial["resizes"]][:1], [(1, 2)])
        self.assertLess(float(trial["values"][-1]["value"]), 0.1)


if __name__ == "__main__":
    unittest.main()
