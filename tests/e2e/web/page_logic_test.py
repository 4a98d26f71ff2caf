"""What the pages work out without being drawn: page_logic/*.ts is bundled with the modules that it is about, and runs in a browser.
What painters put on a canvas is text there (page_logic/display_lists.ts), and stands in display_lists/NAME.txt.
ESPALIER_WRITE_DISPLAY_LISTS=1 writes these files anew: look at what has changed in them."""
import environment

environment.run_inside(__file__)

import difflib
import os
import pathlib
import subprocess
import tempfile
import unittest

from page_case import PageTest

HERE = pathlib.Path(__file__).parent
MODULES = "/usr/share/nodejs"
LEAST_CASES = 50
LISTS = HERE / "display_lists"


def bundle(folder):
    """The cases as one script that leaves `pageLogic` behind."""
    script = pathlib.Path(folder) / "page_logic.js"
    subprocess.run(["esbuild", HERE / "page_logic/main.ts", "--bundle", "--target=es2020", "--main-fields=module,main", "--jsx=automatic",
                    "--define:process.env.NODE_ENV=\"production\"", "--log-level=warning", "--global-name=pageLogic", f"--outfile={script}"],
                   check=True, env={**os.environ, "NODE_PATH": MODULES})
    return script.read_text(encoding="utf-8")


class PageLogic(PageTest):
    def told(self, by):
        """What a function of main.ts returns."""
        with tempfile.TemporaryDirectory(prefix="espalier-logic-") as folder:
            script = bundle(folder)
        return self.browser.execute_script(f"{script}\nreturn pageLogic.{by}();")

    def test_all_cases(self):
        outcomes = self.told("outcomes")
        self.assertGreaterEqual(len(outcomes), LEAST_CASES)
        for outcome in outcomes:
            with self.subTest(outcome["name"]):
                self.assertIsNone(outcome["error"])

    def test_painters_paint_what_they_did(self):
        painted = self.told("displayLists")
        if os.environ.get("ESPALIER_WRITE_DISPLAY_LISTS"):
            LISTS.mkdir(exist_ok=True)
            for name, text in painted.items():
                (LISTS / f"{name}.txt").write_text(text)
        self.assertEqual(sorted(painted), sorted(path.stem for path in LISTS.glob("*.txt")))
        for name, text in painted.items():
            with self.subTest(name):
                before = (LISTS / f"{name}.txt").read_text()
                changes = difflib.unified_diff(before.splitlines(), text.splitlines(), "as it was", "as it is", lineterm="")
                self.assertEqual(text, before, "\n" + "\n".join(changes))

    def test_types_of_the_cases(self):
        done = subprocess.run(["tsc", "-p", HERE / "page_logic"], stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
