"""What the pages work out without being drawn: page_logic/*.ts is bundled with the modules that it is about, and runs in a browser."""
import environment

environment.run_inside(__file__)

import os
import pathlib
import subprocess
import tempfile
import unittest

from page_case import PageTest

HERE = pathlib.Path(__file__).parent
MODULES = "/usr/share/nodejs"
LEAST_CASES = 50


def bundle(folder):
    """The cases as one script that leaves `pageLogic` behind."""
    script = pathlib.Path(folder) / "page_logic.js"
    subprocess.run(["esbuild", HERE / "page_logic/main.ts", "--bundle", "--target=es2020", "--main-fields=module,main", "--jsx=automatic",
                    "--define:process.env.NODE_ENV=\"production\"", "--log-level=warning", "--global-name=pageLogic", f"--outfile={script}"],
                   check=True, env={**os.environ, "NODE_PATH": MODULES})
    return script.read_text(encoding="utf-8")


class PageLogic(PageTest):
    def test_all_cases(self):
        with tempfile.TemporaryDirectory(prefix="espalier-logic-") as folder:
            script = bundle(folder)
        outcomes = self.browser.execute_script(script + "\nreturn pageLogic.outcomes();")
        self.assertGreaterEqual(len(outcomes), LEAST_CASES)
        for outcome in outcomes:
            with self.subTest(outcome["name"]):
                self.assertIsNone(outcome["error"])

    def test_types_of_the_cases(self):
        done = subprocess.run(["tsc", "-p", HERE / "page_logic"], stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
