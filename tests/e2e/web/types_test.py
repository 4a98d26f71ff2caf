"""The page keeps to its types, and these to what docs/openapi.json says of the service's answers."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from answer_types import Types

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "tuner/web/page"
# Types of the page's contract.ts, by the schema of what the service answers.
EXPECTED = {"ViewOverview": "Overview", "ViewStudy": "Study", "ViewTrials": "TrialColumns", "ViewCurves": "Curves", "ViewLanes": "Lanes",
            "ViewDecisions": "Decisions", "ViewTrial": "TrialAnswer"}
WITHOUT_NULL = """
type WithoutNull<T> = unknown extends T ? T : T extends (infer One)[] ? WithoutNull<One>[]
  : T extends object ? {[Name in keyof T]: WithoutNull<Exclude<T[Name], null>>} : Exclude<T, null>;
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
            checks = [f"export const check{name}: (answer: WithoutNull<answers.{name}>) => WithoutNull<contract.{expected}> = "
                      "(answer) => answer;\n" for name, expected in EXPECTED.items()]
            (folder / "check.ts").write_text('import type * as answers from "./answers";\nimport type * as contract from "./contract";\n'
                                             + WITHOUT_NULL + "".join(checks))
            (folder / "tsconfig.json").write_text(json.dumps({"extends": str(PAGE / "tsconfig.json"), "include": ["*.ts"]}))
            return tsc("--noEmit", "-p", folder)

    def test_are_those_of_the_answers(self):
        done = self.against_answers()
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_field_that_no_answer_has_is_found(self):
        done = self.against_answers(lambda text: text.replace("waiting_slots: number;", "waiting_slots: number;\n  awaited: number;"))
        self.assertIn("Property 'awaited' is missing", done.stdout)


if __name__ == "__main__":
    unittest.main()
