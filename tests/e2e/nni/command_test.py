#!/usr/bin/env python3
"""The command espalier-nni: AdaptDL's experiments of NNI 2.x converted, registration checked and repaired."""
import environment

environment.run_inside(__file__)

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest

from espalier_nni import registration
from espalier_nni.command import main
from nni.experiment.config import ExperimentConfig
import yaml

OLD = """
authorName: default
experimentName: cifar10
trialConcurrency: 4
maxExecDuration: 100h
maxTrialNum: 10
nniManagerIp: 10.0.0.1
trainingServicePlatform: adl
searchSpacePath: space.json
logCollection: http
useAnnotation: false
tuner:
  builtinTunerName: TPE
  classArgs:
    optimize_mode: minimize
assessor:
  builtinAssessorName: Medianstop
  classArgs:
    start_step: 5
trial:
  namespace: default
  command: python3 main_adl.py
  codeDir: code
  gpuNum: 1
  adaptive: true
  image: registry/cifar10
  nfs:
    server: 10.20.41.55
    path: /
    containerMountPath: /nfs
  checkpoint:
    storageClass: dfs
    storageSize: 1Gi
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        (self.dir / "code").mkdir()
        (self.dir / "space.json").write_text('{"x": {"_type": "uniform", "_value": [0, 1]}}')

    def run_command(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(map(str, arguments)))
        return code, out.getvalue(), err.getvalue()


class ConvertTest(CommandTest):
    def write(self, text):
        path = self.dir / "old.yml"
        path.write_text(text)
        return path

    def test_nni_accepts_what_comes_out(self):
        code, _, notes = self.run_command("convert", self.write(OLD), "-o", self.dir / "new.yml", "--service", "http://pool:7078")
        self.assertEqual(code, 0)
        for word in ("trial.image", "trial.nfs", "trial.checkpoint"):
            self.assertIn(word, notes)
        self.assertNotIn("authorName", notes)
        config = ExperimentConfig.load(self.dir / "new.yml").json()
        self.assertEqual(config["trialCommand"], "python3 main_adl.py")
        self.assertEqual(config["maxTrialNumber"], 10)
        self.assertEqual(config["tuner"], {"name": "TPE", "classArgs": {"optimize_mode": "minimize"}})
        self.assertEqual(config["assessor"], {"name": "Medianstop", "classArgs": {"start_step": 5}})
        service = config["trainingService"]
        self.assertEqual(service["platform"], "espalier_nni")
        self.assertEqual(service["serviceAddress"], "http://pool:7078")
        self.assertEqual(service["trialGpuNumber"], 1)
        self.assertIsNone(service.get("checkpointDirectory"), "each trial has a folder, which follows it")
        self.assertIs(service["adaptive"], True)
        self.assertIs(service["maximize"], False)
        self.assertNotIn("maxSlots", service)

    def test_a_trial_that_was_not_adaptive_keeps_its_slots(self):
        code, new, _ = self.run_command("convert", self.write(OLD.replace("adaptive: true", "adaptive: false")), "--platform", "adl")
        self.assertEqual(code, 0)
        self.assertEqual(yaml.safe_load(new)["trainingService"],
                         {"platform": "adl", "adaptive": False, "maxSlots": 1})

    def test_relative_paths_follow_the_file(self):
        (self.dir / "elsewhere").mkdir()
        self.run_command("convert", self.write(OLD), "-o", self.dir / "elsewhere" / "new.yml")
        new = yaml.safe_load((self.dir / "elsewhere" / "new.yml").read_text())
        self.assertEqual(new["trialCodeDirectory"], str(self.dir / "code"))
        self.assertEqual(new["searchSpaceFile"], str(self.dir / "space.json"))

    def test_what_cannot_be_converted_is_said(self):
        for change, message in [
                (("Platform: adl", "Platform: pai"), 'is \'pai\', must be "adl"'),
                (("useAnnotation: false", "useAnnotation: true"), "useAnnotation is true"),
                (("  builtinTunerName: TPE\n", ""), "neither builtinTunerName nor classFileName"),
                (("trial:", "trails:"), 'no section "trial"'),
                ((OLD, "- 1"), "is not an experiment"),
                ((OLD, "a: [1"), "is not YAML"),
                ((OLD, "trainingService: {platform: local}"), "version 2 already")]:
            code, _, error = self.run_command("convert", self.write(OLD.replace(*change)))
            self.assertEqual(code, 1, change)
            self.assertIn(message, error)
        code, _, notes = self.run_command("convert", self.write(OLD.replace("  gpuNum: 1", "  gpuNum: 1\n  gpuMum: 2")))
        self.assertEqual(code, 0)
        self.assertIn("trial.gpuMum is left out: it is no field", notes)
        code, _, error = self.run_command("convert", self.dir / "missing.yml")
        self.assertEqual(code, 1)
        self.assertIn('missing.yml": No such file or directory', error)

    def test_nothing_is_overwritten(self):
        (self.dir / "new.yml").write_text("mine")
        code, _, error = self.run_command("convert", self.write(OLD), "-o", self.dir / "new.yml")
        self.assertEqual(code, 1)
        self.assertIn('new.yml": File exists', error)
        self.assertEqual((self.dir / "new.yml").read_text(), "mine")


class RegistrationTest(CommandTest):
    """With a configuration folder of its own."""

    def setUp(self):
        super().setUp()
        before = os.environ["NNI_CONFIG_DIR"]
        self.addCleanup(os.environ.__setitem__, "NNI_CONFIG_DIR", before)
        os.environ["NNI_CONFIG_DIR"] = str(self.dir / "config")

    def test_register_check_and_unregister(self):
        code, out, _ = self.run_command("check")
        self.assertEqual(code, 1)
        self.assertIn("espalier-nni register", out)
        self.assertEqual(self.run_command("register")[0], 0)
        self.assertEqual(self.run_command("check")[0], 0)
        self.assertEqual(set(registration.read()), {"espalier_nni", "adl"})
        code, out, _ = self.run_command("check", "--service", "127.0.0.1:7078")
        self.assertEqual(code, 1)
        self.assertIn("the service at 127.0.0.1:7078: want a URL, such as http://127.0.0.1:7078", out)
        code, out, _ = self.run_command("unregister")
        self.assertIn("removed adl", out)
        self.assertEqual(registration.read(), {})

    def test_a_package_that_is_gone_is_found_and_removed(self):
        self.run_command("register")
        services = registration.read()
        registration.write({**services, "not_installed_service": {"nodeModulePath": "/x", "nodeClassName": "X"}})
        code, out, _ = self.run_command("check")
        self.assertEqual(code, 1)
        self.assertIn('"not_installed_service" cannot be imported', out)
        self.assertIn("espalier-nni unregister", out)
        self.assertIn("removed not_installed_service", self.run_command("unregister")[1])
        self.run_command("register")
        self.assertEqual(self.run_command("check")[0], 0)

    def test_a_file_that_is_not_json_is_set_aside(self):
        registration.write({})
        registration.path().write_text("{")
        code, out, _ = self.run_command("check")
        self.assertEqual(code, 1)
        self.assertIn("is not JSON", out)
        self.assertEqual(self.run_command("unregister")[0], 0)
        self.assertEqual(json.loads(registration.path().read_text()), {})
        self.assertEqual(registration.path().with_suffix(".broken").read_text(), "{")


if __name__ == "__main__":
    unittest.main(verbosity=2)
