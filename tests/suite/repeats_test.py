import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import repeats  # noqa: E402


class Repeats(unittest.TestCase):
    def test_runs_add_up_by_test_and_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "repeats.txt"
            repeats.add({("a", "ci"): (10, 0), ("b", "asan"): (10, 2)}, path=path, at="1111111111")
            repeats.add({("b", "asan"): (5, 1)}, beside_load=True, path=path, at="1111111111")
            repeats.add({("b", "asan"): (3, 0)}, path=path, at="2222222222")
            self.assertEqual(repeats.read(path), {("a", "ci", "1111111111"): [10, 0, 0, 0], ("b", "asan", "1111111111"): [10, 2, 5, 1],
                                                  ("b", "asan", "2222222222"): [3, 0, 0, 0]})
            self.assertTrue(path.read_text().startswith("# What repeated runs"))

    def test_the_commit_is_that_of_the_checkout_or_none(self):
        self.assertRegex(repeats.commit(), r"^([0-9a-f]{10}\+?|none)$")


if __name__ == "__main__":
    unittest.main()
