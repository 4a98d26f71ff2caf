"""The code on a page of docs/ is that of files which are compiled.

A fenced block names its file: its lines stand there one after the other, spaces at both ends aside.
A diff names one or two: what it keeps and removes stands in the first, what it keeps and adds in the second.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_of(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def stands_in(wanted, file):
    have = lines_of((ROOT / file).read_text())
    return any(have[i:i + len(wanted)] == wanted for i in range(len(have) - len(wanted) + 1))


def check(test, page):
    """Fails the test where a block is not in its file. How many blocks there are."""
    blocks = 0
    for language, files, text in FENCE.findall((ROOT / page).read_text()):
        files = files.split()
        if language == "diff":
            test.assertIn(len(files), (1, 2), text)
            sides = [[line[1:] for line in text.splitlines() if not line.startswith(skipped)]
                     for skipped in ("+", "-")]
        else:
            test.assertEqual(bool(files), language in ("cpp", "cmake", "python"), f"no file is named:\n{text}")
            sides = [text.splitlines()] * len(files)
        for side, file in zip(sides, files):
            blocks += 1
            test.assertTrue(stands_in(lines_of("\n".join(side)), file), f"not in {file}:\n" + "\n".join(side))
    return blocks
