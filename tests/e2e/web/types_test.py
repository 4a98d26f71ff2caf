"""The page keeps to its types, and these to what docs/openapi.json says of the service's answers."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from answer_types import Types

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "tuner/web/page"
# Types of the page's contract.ts, by the schema of what the service answers.
EXPECTED = {"ViewOverview": ["Overview"], "ViewStudy": ["Study"], "ViewTrials": ["TrialColumns"], "ViewCurves": ["Curves"], "ViewLanes": ["Lanes"],
            "ViewDecisions": ["Decisions"], "ViewTrial": ["TrialAnswer"], "Simulation": ["Simulation"],
            "ViewAnalysis": ["Importances", "Front", "Distribution", "BestOverTime"],
            "ViewEventHello": ["Hello"], "ViewEventChanged": ["Changed"], "ViewEventValues": ["Values"], "ViewEventLive": ["LiveFigures"]}
# What is asked for is there: an analysis has the parts that its kind has.
WHOLE = """
type Whole<T> = unknown extends T ? T : T extends (infer One)[] ? Whole<One>[] : T extends object ? {[Name in keyof T]-?: Whole<T[Name]>} : T;
"""


def tsc(*arguments):
    return subprocess.run(["tsc", *arguments], stdout=subprocess.PIPE, text=True)


class TypesOfThePage(unittest.TestCase):
    def test_hold(self):
        done = tsc("--noEmit", "-p", PAGE)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_are_strict(self):
        told = tsc("-p", PAGE, "--showConfig").stdout
        for rule in ("strict", "noUncheckedIndexedAccess", "exactOptionalPropertyTypes"):
            self.assertIn(f'"{rule}": true', told)

    def against_answers(self, change=lambda text: text):
        """What tsc says of the service's answers where the page's types are expected."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "answers.ts").write_text(Types(ROOT / "docs/openapi.json").of(EXPECTED))
            (folder / "contract.ts").write_text(change((PAGE / "contract.ts").read_text()))
            checks = [f"export const check{expected}: (answer: Whole<answers.{name}>) => contract.{expected} = (answer) => answer;\n"
                      for name, all_expected in EXPECTED.items() for expected in all_expected]
            (folder / "check.ts").write_text('import type * as answers from "./answers";\nimport type * as contract from "./contract";\n'
                                             + WHOLE + "".join(checks))
            (folder / "tsconfig.json").write_text(json.dumps({"extends": str(PAGE / "tsconfig.json"), "include": ["*.ts"]}))
            return tsc("--noEmit", "-p", folder)

    def test_are_those_of_the_answers(self):
        done = self.against_answers()
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_field_that_no_answer_has_is_found(self):
        done = self.against_answers(lambda text: text.replace("waiting_slots: number;", "waiting_slots: number;\n  awaited: number;"))
        self.assertIn("Property 'awaited' is missing", done.stdout)

    def test_a_null_that_the_page_does_not_expect_is_found(self):
        done = self.against_answers(lambda text: text.replace("like: LikeStudy | null;", "like: LikeStudy;"))
        self.assertIn("Type 'null' is not assignable to type 'LikeStudy'", done.stdout)

    def test_another_type_is_found(self):
        done = self.against_answers(lambda text: text.replace("  cursor: string | number;", "  cursor: number;"))
        self.assertIn("'string' is not assignable to type 'number'", done.stdout)

    def test_each_type_is_one_that_is_compared(self):
        text = (PAGE / "contract.ts").read_text()
        bodies = {found[1]: found[0] for found in re.finditer(r"^export (?:interface|type) (\w+).*?(?=^export |\Z)", text, re.MULTILINE | re.DOTALL)}
        wanted, met = {one for some in EXPECTED.values() for one in some}, set()
        while wanted:
            name = wanted.pop()
            met.add(name)
            wanted |= {other for other in bodies if re.search(rf"\b{other}\b", bodies[name])} - met
        self.assertEqual(sorted(bodies.keys() - met), [])


if __name__ == "__main__":
    unittest.main()
