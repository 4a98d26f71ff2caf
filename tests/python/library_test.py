"""The library's file: what it shows to other libraries, and what it says where it cannot be loaded."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from espalier import _library
from espalier.errors import UsageError

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import older_symbols  # noqa: E402

LIBRARY = pathlib.Path(os.environ["ESPALIER_TORCH_LIBRARY"])


class Library(unittest.TestCase):
    def test_shows_only_its_own_names(self):
        listed = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], check=True, text=True,
                                capture_output=True).stdout
        names = [line.split()[-1] for line in listed.splitlines()]
        self.assertGreater(len(names), 20)
        self.assertEqual([n for n in names if not n.startswith("esp_")], [])

    def test_wants_nothing_of_python(self):
        listed = subprocess.run(["nm", "-D", "--undefined-only", str(LIBRARY)], check=True, text=True,
                                capture_output=True).stdout
        self.assertEqual([line for line in listed.splitlines() if " Py" in line or " _Py" in line], [])

    def import_with(self, library):
        return subprocess.run([sys.executable, "-c", "import espalier; espalier.trial()"], text=True,
                              capture_output=True, env=os.environ | {"ESPALIER_TORCH_LIBRARY": str(library)})

    def test_another_torch_is_named_before_loading(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / LIBRARY.name
            shutil.copy(LIBRARY, copy)
            copy.with_suffix(".json").write_text(json.dumps({"torch": "1.6.0"}))
            done = self.import_with(copy)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"built for torch 1\.6, and this is torch \d")

    def wheel_with(self, *torches):
        """The rest of this test finds libraries as in a wheel that has them for these."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for torch in torches:
            of_it = folder / "lib" / f"torch-{torch.rpartition('.')[0]}"
            of_it.mkdir(parents=True)
            (of_it / LIBRARY.name).touch()
            (of_it / LIBRARY.with_suffix(".json").name).write_text(json.dumps({"torch": torch}))
        self.enterContext(mock.patch.object(_library, "__file__", str(folder / "_library.py")))
        self.enterContext(mock.patch.dict(os.environ, ESPALIER_TORCH_LIBRARY=""))
        return folder / "lib"

    def test_the_library_of_the_torch_that_is_there_is_taken(self):
        libraries = self.wheel_with("2.9.0", "2.10.0", "2.15.0")
        for torch, minor in (("2.9.1", "2.9"), ("2.10.0+cu128", "2.10"), ("2.10.0a0+git1", "2.10"), ("2.15.2", "2.15"),
                             ("2.15.0.dev20261101+cpu", "2.15")):
            self.assertEqual(_library.find(torch), libraries / f"torch-{minor}" / LIBRARY.name)

    def test_a_torch_that_none_fits_is_named_with_those_that_do(self):
        self.wheel_with("2.9.0", "2.10.0", "2.15.0")
        for torch, nearest in (("2.8.1", "2.9"), ("2.1.0", "2.9"), ("2.12.0+cu130", "2.15"), ("2.16.0a0", "2.15"), ("3.0.0", "2.15")):
            with self.assertRaises(UsageError) as raised:
                _library.find(torch)
            self.assertEqual(str(raised.exception), f"espalier is built for torch 2.9, 2.10 and 2.15, and this is torch {torch}: "
                             f"pip install 'torch=={nearest}.*', or an espalier that is built for yours")

    def test_a_wheel_of_none_says_where_it_has_looked(self):
        libraries = self.wheel_with()
        with self.assertRaisesRegex(UsageError, f"there is no library at {re.escape(str(libraries))}/torch-"):
            _library.find("2.11.0")

    def test_the_extras_ask_for_the_torches_that_wheels_are_built_with(self):
        pins = (ROOT / "scripts/libtorch-pins.sh").read_text()
        torches = re.search(r"^WHEEL_TORCHES=\((.*)\)$", pins, re.M)[1].split()
        minors = [[int(number) for number in torch.split(".")[:2]] for torch in torches]
        self.assertEqual(minors, [[2, minor] for minor in range(minors[0][1], minors[-1][1] + 1)])
        asked = set(re.findall(r'"(torch[^"]*)"', (ROOT / "pyproject.toml").read_text()))
        self.assertEqual(asked, {f"torch>=2.{minors[0][1]},<2.{minors[-1][1] + 1}"})

    def test_waits_by_the_older_symbol_in_a_wheel(self):
        self.assertIn("GLIBCXX_3.4.30", self.versions_of(LIBRARY.read_bytes()))
        older = older_symbols.with_older(LIBRARY.read_bytes(), "it")
        self.assertEqual(len(older), LIBRARY.stat().st_size)
        self.assertNotIn("GLIBCXX_3.4.30", self.versions_of(older))
        self.assertIsNone(older_symbols.with_older(older, "it"), "nothing is left to do")
        self.assertIsNone(older_symbols.with_older(pathlib.Path("/bin/sh").read_bytes(), "it"))

    def test_another_newer_symbol_is_refused_by_name(self):
        wait = older_symbols.SYMBOL
        with mock.patch.object(older_symbols, "SYMBOL", b"another"), self.assertRaises(SystemExit) as raised:
            older_symbols.with_older(LIBRARY.read_bytes(), "it.so")
        self.assertIn(f"it.so asks for {wait.decode()} of GLIBCXX_3.4.30", str(raised.exception))

    def versions_of(self, content):
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            listed = subprocess.run(["readelf", "--version-info", "--wide", file.name], check=True, text=True,
                                    capture_output=True).stdout
        return set(re.findall(r"Name: (\S+)", listed))

    def test_no_library_is_named(self):
        done = self.import_with("/nowhere/libespalier_torch.so")
        self.assertRegex(done.stderr, "there is no library at ESPALIER_TORCH_LIBRARY=/nowhere")

    def test_everything_public_is_found_without_importing_it(self):
        program = ("import sys, espalier\n"
                   "assert set(espalier.__all__) | {'testing', 'env', 'checkpoint', 'torch', 'optuna'} <= set(dir(espalier))\n"
                   "assert not {'torch', 'espalier.client', 'espalier._tune'} & set(sys.modules)\n"
                   "assert callable(espalier.testing.start) and espalier.env.num_replicas() == 1\n"
                   "assert espalier.torch.epochs and espalier.checkpoint.State is espalier.State\n"
                   "assert 'Client' not in vars(espalier)\n"
                   "assert espalier.Client is vars(espalier)['Client']\n"
                   "sys.modules['optuna'] = None\n"
                   "assert not hasattr(espalier, 'optuna') and not hasattr(espalier, 'absent')\n")
        done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_reports_without_a_tuner_are_printed(self):
        program = ("import espalier\n"
                   "trial = espalier.trial()\n"
                   "import torch\n"
                   "loss = torch.full((), trial.get('lr', 0.5), requires_grad=True)\n"
                   "trial.report(1, loss, accuracy=loss / 8)\n"
                   "import pathlib\n"
                   "assert (trial.study, trial.directory) == (None, pathlib.Path.cwd())\n")
        done = subprocess.run([sys.executable, "-c", program, "--set", "lr=2", "--set", "typo=1"], text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\b1\b.*\b2\b")
        self.assertNotIn("requires_grad", done.stderr)
        self.assertIn('parameter "typo" was given but the program never asked for it', done.stderr)

    def test_reports_that_cannot_be_meant_are_said_once(self):
        for calls, wanted in ((["report(2, 1)", "report(2, 3)", "report(1, 4)"], "step 2 was reported twice, and the first"),
                              (["report(5, 1)", "report(2, 3)", "report(2, 4)"], "step 2 was reported after step 5: steps"),
                              (["fail('no')", "report(1, 3)"], "step 1 was reported after the trial's end: report before")):
            program = "import espalier\ntrial = espalier.trial()\n" + "".join(f"trial.{call}\n" for call in calls)
            done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
            self.assertEqual(done.stderr.count("UserWarning"), 1, done.stderr)
            self.assertIn(f"<string>:4: UserWarning: {wanted}", done.stderr)

    def test_what_is_no_number_is_refused_by_name(self):
        program = ("import espalier\n"
                   "trial = espalier.trial()\n"
                   "for call in (lambda: trial.report(1, {'loss': 1}), lambda: trial.report(1, 'low'), lambda: trial.report(1, None),\n"
                   "             lambda: trial.report(1, 0.5, accuracy=[1, 2]), lambda: trial.finish([3]),\n"
                   "             lambda: trial.report(1, __import__('torch').ones(2)), lambda: trial.report(1, 'x' * 90),\n"
                   "             lambda: trial.report(0.5, 1), lambda: trial.report({'loss': 1}, 1), lambda: trial.report(None, 1),\n"
                   "             lambda: trial.report(float('nan'), 1), lambda: trial.report(2**53 + 1, 1), lambda: trial.report(10**30, 1),\n"
                   "             lambda: trial.should_stop(2**64), lambda: trial.report(1, 10**400)):\n"
                   "    try:\n"
                   "        call()\n"
                   "    except espalier.errors.UsageError as error:\n"
                   "        print(error)\n")
        done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:15], [
            "the value of a trial is {'loss': 1}, a dict: must be one number; report further figures by name, as "
            "report(step, value, accuracy=0.9)",
            "the value of a trial is 'low', a str: must be one number",
            "the value of a trial is None, a NoneType: must be one number",
            "\"accuracy\" of a trial is [1, 2], a list: must be one number",
            "the result of a trial is [3], a list: must be one number",
            "the value of a trial is tensor([1., 1.]), a Tensor: must be one number",
            f"the value of a trial is '{'x' * 76}..., a str: must be one number",
            *(f"the step of a report is {step}: must be a whole number, as in report(step, value)"
              for step in ("0.5, a float", "{'loss': 1}, a dict", "None, a NoneType", "nan, a float")),
            *(f"the step of a report is {step}, a int: must be at most 2**53" for step in (2**53 + 1, 10**30, 2**64)),
            f"the value of a trial is 1{'0' * 76}..., a int: must be one number"])

    def test_parameters_of_the_command_line_are_not_for_the_programs_parser(self):
        program = ("import argparse, espalier\n"
                   "trial = espalier.trial()\n"
                   "parser = argparse.ArgumentParser()\n"
                   "parser.add_argument('--epochs', type=int)\n"
                   "print(parser.parse_args().epochs, trial.get('lr', 0.5), trial.get('n', 1))\n")

        def run(*arguments):
            return subprocess.run([sys.executable, "-c", program, *arguments], text=True, capture_output=True)
        done = run("--set", "lr=2", "--epochs", "3", "--set", "n=4")
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, "3 2.0 4"), done.stderr)
        for arguments in (["--set", "width"], ["--epochs", "3", "--set"]):
            done = run(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, "^-c: --set.*: want name=value.*\n$")

    def test_a_parser_that_comes_before_the_trial(self):
        def run(parser, *arguments):
            program = f"import argparse, sys, espalier\nparser = argparse.ArgumentParser()\n{parser}\nparser.parse_args()\n"
            return subprocess.run([sys.executable, "-c", program, *arguments], text=True, capture_output=True)
        hint = "espalier: espalier.trial() takes each --set from the command line: call it before parse_args()\n"
        done = run("", "--set", "lr=2")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rf"error: unrecognized arguments: --set lr=2\n{re.escape(hint)}$")
        for parser, arguments, code in (("", ["--epochs", "3"], 2), ("parser.add_argument('--set')", ["--set", "lr=2"], 0),
                                        ("sys.exit(3)", ["--set", "lr=2"], 3)):
            done = run(parser, *arguments)
            self.assertEqual((done.returncode, done.stderr.count(hint)), (code, 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
