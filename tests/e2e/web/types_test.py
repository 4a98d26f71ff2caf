"""The page keeps to its types: those of the service's answers among them."""
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Types(unittest.TestCase):
    def test_holds_to_them(self):
        done = subprocess.run(["tsc", "--noEmit", "-p", ROOT / "tuner/web/page"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_are_strict(self):
        done = subprocess.run(["tsc", "-p", ROOT / "tuner/web/page", "--showConfig"], check=True, stdout=subprocess.PIPE, text=True)
        for rule in ("strict", "noUncheckedIndexedAccess", "exactOptionalPropertyTypes"):
            self.assertIn(f'"{rule}": true', done.stdout)


if __name__ == "__main__":
    unittest.main()
