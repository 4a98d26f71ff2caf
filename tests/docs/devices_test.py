"""No program that we show drops its slot's device: whoever makes a trial and trains in it names trial.device.

A program that does not trains on the CPU wherever it is run, and its slot's GPU idles.
"""
import json
import re
import unittest

from code_blocks import FENCE, ROOT

MAKES_TRIAL = re.compile(r"\bespalier::Trial \w+\(|\bespalier\.trial\(\)|\badl\.AdaptiveDataParallel\(")
TRAINS = re.compile(r"\.backward\(|\.Step\(|[tT]rainer\.(train|fit)\(")
WHOLE_IN_PYTHON = re.compile(r"^ *import torch\b", re.MULTILINE)  # and no extract from a program
NAMES_DEVICE = re.compile(r"\btrial(\(\))?\.device\b")

# Who moves model and batches instead.
EXCEPTIONS = {
    "examples/python_adaptdl/linear_regression.py": "it is AdaptDL's, and asks torch for a GPU; a slot's is the only one it sees",
    "examples/python_transformers/train.py": "Hugging Face's Trainer does",
}


def drops_device(text):
    return bool(MAKES_TRIAL.search(text) and TRAINS.search(text) and not NAMES_DEVICE.search(text))


def text_of(path):
    if path.suffix != ".ipynb":
        return path.read_text()
    cells = json.loads(path.read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def programs():
    """(where, text) of each program in examples/."""
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.suffix in (".cc", ".py", ".ipynb"):
            yield str(path.relative_to(ROOT)), text_of(path)


def programs_on(page, text):
    """(where, text) of each program that stands whole on a page; of a diff, what comes of it."""
    for language, _, block in FENCE.findall(text):
        if language == "diff":
            block = "\n".join(line[1:] for line in block.splitlines() if not line.startswith("-"))
        whole = WHOLE_IN_PYTHON.search(block) if language == "python" else re.search(r"espalier::Trial \w+\(", block)
        if whole:
            yield f"{page}: {block.strip().splitlines()[0]}", block


class Devices(unittest.TestCase):
    def test_examples_train_on_the_slots_device(self):
        found = dict(programs())
        trained = [where for where, text in found.items() if MAKES_TRIAL.search(text) and TRAINS.search(text)]
        self.assertGreater(len(trained), 8)
        self.assertEqual([where for where in trained if drops_device(found[where]) and where not in EXCEPTIONS], [])

    def test_exceptions_are_needed(self):
        found = dict(programs())
        self.assertEqual([where for where in EXCEPTIONS if not drops_device(found.get(where, ""))], [])

    def test_programs_on_pages_train_on_the_slots_device(self):
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
        found = [program for page in pages for program in programs_on(str(page.relative_to(ROOT)), page.read_text())]
        self.assertGreater(sum(bool(TRAINS.search(text)) for _, text in found), 1)
        self.assertEqual([where for where, text in found if drops_device(text)], [])

    def test_a_program_that_drops_it_is_found(self):
        for where in ("spirals/spirals.cc", "python_nni/train.py", "python_notebook/half_moons.ipynb"):
            text = text_of(ROOT / "examples" / where)
            self.assertFalse(drops_device(text), where)
            self.assertTrue(drops_device(re.sub(r"\btrial(\(\))?\.device", r"cpu", text)), where)
        page = (ROOT / "docs/python.md").read_text()
        dropped = [text for _, text in programs_on("docs/python.md", page.replace("trial.device", "'cpu'"))]
        self.assertTrue(any(map(drops_device, dropped)))


if __name__ == "__main__":
    unittest.main()
