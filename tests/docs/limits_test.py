"""Limits that the page on search spaces gives are those of the code."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/search_spaces.md"
# By the row: the constants of its numbers, in their order.
ROWS = {
    "parameters of a space": [("search_spaces/search_space.h", "kMaxParameters")],
    "options of a choice": [("search_spaces/distribution.h", "kMaxOptions")],
    "bytes of a parameter's name": [("search_spaces/search_space.h", "kMaxParameterNameBytes"),
                                    ("search_spaces/search_space.h", "kMaxFlatNameBytes")],
    "steps of `quniform`": [("search_spaces/distribution.h", "kMaxSteps")],
    "a file of JSON": [("search_spaces/json_text.h", "kMaxTextBytes"), ("search_spaces/json_text.h", "kMaxKeysInObject"),
                       ("search_spaces/json_text.h", "kMaxDepth")],
    "a trial's reports": [("tuner/core/state/refusals.h", "kMaxReportsPerTrial"), ("tuner/core/state/refusals.h", "kMaxStep")],
}
POWERS = {"2^53": 2 ** 53, "1 MiB": 2 ** 20}


def constant(path, name):
    value = re.search(rf"\b{name} = ([^;]+);", (ROOT / path).read_text())[1]
    value = re.sub(r"std::(?:size_t|int64_t)\{1\} << (\d+)", lambda shift: str(2 ** int(shift[1])), value)
    return int(value.replace("'", ""))


def rows():
    section = PAGE.read_text().split("## Limits")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")][1:]


def number(text):
    return POWERS.get(text) or int(text.replace(",", ""))


class Limits(unittest.TestCase):
    def test_numbers_are_those_of_the_code(self):
        told = {what: [number(text.strip()) for text in most.split(";")] for what, most in rows()}
        self.assertEqual(len(told), len(ROWS))
        for row, names in ROWS.items():
            numbers = next(told[what] for what in told if what.startswith(row))
            self.assertEqual(numbers, [constant(*name) for name in names], row)


if __name__ == "__main__":
    unittest.main()
