"""What an end-to-end test leaves of its processes and trials where it fails, by harness.py."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = """
import pathlib, sys, unittest
sys.path.insert(0, {e2e!r})
import harness

class Alone(harness.TunerTest):
    def test_fails(self):
        self.write("replica-0.log", "of a replica")
        self.write("model.pt", "no text")
        self.fail("on purpose")

    def test_passes(self):
        self.write("replica-0.log", "of nobody")

class Sharing(harness.SharedPoolTest):
    @classmethod
    def setUpClass(cls):
        cls.pool = harness.TunerTest()
        cls.pool.setUp()
        cls.addClassCleanup(cls.pool.tearDown)

    def setUp(self):
        harness.TunerTest.setUp(self)
        self.name, self.grpc, self.studies = self._testMethodName, "nowhere", []

    def run_tuner(self, *_, **__):
        return type("Done", (), {{"stdout": "0 of 2 slots"}})

    def test_fails(self):
        self.pool.write("out-0.txt", "of the shared service")
        self.fail("on purpose")

if __name__ == "__main__":
    unittest.main()
"""


class KeptLogs(unittest.TestCase):
    def kept(self, folder, **environment):
        test = pathlib.Path(folder) / "some_test.py"
        test.write_text(TESTS.format(e2e=str(ROOT / "tests/e2e")))
        env = {name: value for name, value in os.environ.items() if name != "ESPALIER_FAILED_LOGS"}
        done = subprocess.run([sys.executable, "-B", test], text=True, capture_output=True,
                              env=env | {"ESPALIER_BIN": folder} | environment)
        self.assertIn("Ran 3 tests", done.stderr)
        self.assertIn("FAILED (failures=2)", done.stderr)
        logs = pathlib.Path(folder) / "logs"
        return {str(path.relative_to(logs)): path.read_text() for path in logs.rglob("*") if path.is_file()}

    def test_what_failed_tests_and_the_pool_they_share_have_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.kept(folder, ESPALIER_FAILED_LOGS=f"{folder}/logs"),
                             {"some_test.Alone.test_fails/replica-0.log": "of a replica",
                              "some_test.Sharing.test_fails/out-0.txt": "of the shared service"})

    def test_nothing_where_nobody_asks(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.kept(folder), {})


if __name__ == "__main__":
    unittest.main()
