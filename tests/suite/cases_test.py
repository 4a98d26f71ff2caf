import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cases  # noqa: E402

BASE = """
import unittest
class Shared(unittest.TestCase):
    def test_shared(self): pass
class Contract:
    def test_of_the_contract(self): pass
"""
TEST = """
import os, unittest
from base import Contract, Shared
os.execvp("false", ["false"])
class Own(Shared):
    def helper(self): pass
    def test_own(self): pass
class Kept(Contract, unittest.TestCase):
    pass
class NoTest:
    def test_nothing(self): pass
"""


class Cases(unittest.TestCase):
    def test_cases_are_found_without_importing_the_test(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "base.py").write_text(BASE)
            test = pathlib.Path(folder) / "some_test.py"
            test.write_text(TEST)
            self.assertEqual(cases.cases_of(test), ["Kept.test_of_the_contract", "Own.test_own", "Own.test_shared"])

    def test_bases_in_folders_of_ours(self):
        found = cases.cases_of(cases.ROOT / "tests/e2e/kubernetes/contract_test.py")
        self.assertIn("SmallApiServer.test_rights", found)
        self.assertFalse([case for case in found if case.startswith("Contract.")])


if __name__ == "__main__":
    unittest.main()
