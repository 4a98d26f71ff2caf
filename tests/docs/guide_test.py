"""The code in docs/elastic_training_loop.md is that of files which are compiled, and these run.

A fenced block names its file: its lines stand there one after the other, spaces at both ends aside.
A diff names two: what it keeps and removes stands in the first, what it keeps and adds in the second.
"""
import os
import pathlib
import re
import subprocess
import unittest

BIN = pathlib.Path(os.environ["ESPALIER_BIN"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/elastic_training_loop.md").read_text()
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def stands_in(wanted, file):
    have = lines_of((ROOT / file).read_text())
    return any(have[i:i + len(wanted)] == wanted for i in range(len(have) - len(wanted) + 1))


class Guide(unittest.TestCase):
    def test_code_is_that_of_the_files_it_names(self):
        blocks = 0
        for language, files, text in FENCE.findall(GUIDE):
            files = files.split()
            if language == "diff":
                sides = [[line[1:] for line in text.splitlines() if not line.startswith(skipped)]
                         for skipped in ("+", "-")]
            else:
                self.assertEqual(bool(files), language in ("cpp", "cmake"), f"no file is named:\n{text}")
                sides = [text.splitlines()] * len(files)
            self.assertEqual(len(sides), len(files), text)
            for side, file in zip(sides, files):
                blocks += 1
                self.assertTrue(stands_in(lines_of("\n".join(side)), file), f"not in {file}:\n" + "\n".join(side))
        self.assertGreater(blocks, 10)

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
