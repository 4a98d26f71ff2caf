"""The code in docs/elastic_training_loop.md is that of files which are compiled, and these run."""
import os
import pathlib
import subprocess
import unittest

import code_blocks

BIN = pathlib.Path(os.environ["ESPALIER_BIN"])


class Guide(unittest.TestCase):
    def test_code_is_that_of_the_files_it_names(self):
        self.assertGreater(code_blocks.check(self, "docs/elastic_training_loop.md"), 10)

    def test_plain_and_elastic_loop_learn_alike(self):
        plain = subprocess.run([BIN / "spirals_plain"], text=True, capture_output=True, check=True, timeout=120)
        elastic = subprocess.run([BIN / "spirals"], text=True, capture_output=True, check=True, timeout=120)
        self.assertGreater(float(plain.stdout.split()[-1]), 0.9)
        self.assertGreater(float(elastic.stdout.split("=")[-1]), 0.9)

    def test_variations_run(self):
        done = subprocess.run([BIN / "guide_variations"], text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("report step=2", done.stdout)


if __name__ == "__main__":
    unittest.main()
