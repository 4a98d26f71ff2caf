"""Whether pages are built, and what the build makes of them."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from fixture_server import ROOT, bundle


class Option(unittest.TestCase):
    def configured(self, *definitions, code=0, **environment):
        """What cmake/EspalierWeb.cmake says."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "try.cmake"
            script.write_text(f'include({ROOT}/cmake/EspalierWeb.cmake)\nmessage(STATUS "built: ${{ESPALIER_BUILD_WEB}}")\n')
            done = subprocess.run(["cmake", *definitions, "-P", script], env={**os.environ, "ESPALIER_WEB": "", **environment},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode != 0, code != 0, done.stdout)
        return " ".join(done.stdout.split())

    def test_auto_builds_where_all_is_there(self):
        self.assertIn("built: ON", self.configured())
        self.assertIn("built: ON", self.configured("-DESPALIER_WEB=ON"))

    def test_auto_says_what_is_missing(self):
        told = self.configured("-DESPALIER_NODE_MODULES=/nowhere")
        self.assertIn("not built, react was not found (Debian's package node-react; scripts/setup.sh installs it)", told)
        self.assertIn("built: OFF", told)

    def test_on_fails_without(self):
        told = self.configured("-DESPALIER_WEB=ON", "-DESPALIER_NODE_MODULES=/nowhere", code=1)
        self.assertIn("ESPALIER_WEB=ON, but react was not found", told)

    def test_off_and_the_environment(self):
        self.assertIn("not built, ESPALIER_WEB=OFF", self.configured("-DESPALIER_WEB=OFF"))
        self.assertIn("not built, ESPALIER_WEB=off in the environment", self.configured(ESPALIER_WEB="off"))
        self.assertIn("built: ON", self.configured("-DESPALIER_WEB=ON", ESPALIER_WEB="off"))


class Bundle(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-bundle-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def made(self, name, page=ROOT / "tuner/web/page"):
        """{file: its bytes}"""
        bundle(self.folder / name, page)
        return {path.name: path.read_bytes() for path in (self.folder / name).iterdir()}

    def test_same_sources_make_the_same_bytes(self):
        self.assertEqual(self.made("one"), self.made("two"))

    def test_a_name_changes_with_its_content(self):
        page = self.folder / "page"
        shutil.copytree(ROOT / "tuner/web/page", page)
        before = self.made("before", page)
        with open(page / "page.css", "a", encoding="utf-8") as style:
            style.write(".another { color: red; }\n")
        after = self.made("after", page)
        names = [dict(re.findall(rb"app\.([0-9a-f]{16})\.(js|css)", one["index.html"])) for one in (before, after)]
        names = [{kind: name for name, kind in one.items()} for one in names]
        self.assertEqual(names[0][b"js"], names[1][b"js"])
        self.assertNotEqual(names[0][b"css"], names[1][b"css"])

    def test_is_small(self):
        made = self.made("one")
        first_load = sum(len(made[f"{name}.br"]) for name in ("app.js", "app.css", "index.html"))
        self.assertLess(first_load, 165_000)
        self.assertLess(first_load + sum(len(made[f"{name}.gz"]) for name in ("app.js", "app.css", "index.html")), 400_000)


if __name__ == "__main__":
    unittest.main()
