"""The record of a study as one file, in a headless Chromium without a network: what `tuner simulate --html` writes, of a study whose
metric and parameters are called what would harm a page that takes names for markup."""
import environment

environment.run_inside(__file__)

import html
import json
import pathlib
import subprocess
import tempfile
import unittest
import urllib.request

from selenium.webdriver.common.keys import Keys

from harness import TUNER, TunerTest, wait_for
from page_case import BrowserTest

METRIC = "</script><script>alert(1)</script>"
KIND = "</noscript><!--<img src=x onerror=alert(2)>"
STUDY = {
    "name": "hostile", "metric": {"name": METRIC, "direction": "minimize"}, "command": ["./emulated"], "trials": 12,
    "pruner": {"name": "asha"},
    "search_space": {
        "lr": {"_type": "loguniform", "_value": [0.001, 1]}, "batch_size": {"_type": "choice", "_value": [64, 128]},
        "kind": {"_type": "choice", "_value": [KIND, "sgd\u2028\u202e"]},
    },
}
MOST_BYTES = 1_000_000


def nodes(document, name):
    """All elements of this name, of a document as the browser's tools tell it."""
    own = [document] if document["nodeName"] == name else []
    return own + [found for child in document.get("children", []) for found in nodes(child, name)]


def texts(document):
    own = [document["nodeValue"]] if document["nodeName"] == "#text" else []
    return own + [found for child in document.get("children", []) for found in texts(child)]


class Record(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="espalier-record-")
        cls.addClassCleanup(folder.cleanup)
        cls.dir = pathlib.Path(folder.name)
        (cls.dir / "study.json").write_text(json.dumps(STUDY), encoding="utf-8")
        subprocess.run([TUNER, "simulate", "emulated", cls.dir / "study.json", "--slots", "4", "--epochs", "12", "--policy", "fixed",
                        "--policy", "promise_goodput", "--html", cls.dir / "page.html"], check=True, stdout=subprocess.PIPE)
        cls.file = cls.dir / "page-promise_goodput.html"

    def setUp(self):
        super().setUp()
        self.browser.execute_cdp_cmd("Network.enable", {})
        self.browser.execute_cdp_cmd("Network.emulateNetworkConditions",
                                     {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
        self.addCleanup(self.assert_no_errors)
        self.base = self.file.as_uri()

    def open_record(self, part=""):
        self.browser.get("about:blank")
        self.open(f"#/ui/studies/1{part}" if part else "", "record of a simulation")

    def test_a_study_is_looked_at_from_a_file(self):
        self.assertLess(self.file.stat().st_size, MOST_BYTES)
        self.open_record()
        self.wait_text(f"best {METRIC}, trial")
        self.wait_painted()
        self.wait_text("12 trials held slots")
        self.assertIn("12 of 12", self.text())
        self.button("Decisions").click()
        self.wait_for(lambda: len(self.all("table.decisions tbody tr")) > 12, "rows of decisions")
        self.assertTrue(self.browser.current_url.endswith("#/ui/studies/1?tab=decisions"), self.browser.current_url)
        self.browser.back()
        self.wait_painted()
        self.assertEqual(self.browser.execute_script("return performance.getEntriesByType('resource').length"), 0)
        for live in ("Stop", "Pool", "Cluster"):
            self.assertNotIn(live, [one.text for one in self.all("button, nav a")])

    def test_what_is_chosen_is_in_the_address_and_survives_a_reload(self):
        self.open_record("?f=" + "state:pruned" + "&sort=value")
        self.wait_for(lambda: 0 < len(self.rows()) < 12, "fewer rows")
        rows = self.rows()
        self.assertEqual({row[1].split()[-1] for row in rows}, {"pruned"})
        values = [float(row[2]) for row in rows]
        self.assertEqual(values, sorted(values))
        self.browser.refresh()
        self.wait_for(lambda: self.rows() == rows, "the same rows")

    def rows(self):
        script = """return [...document.querySelectorAll("section[aria-label=Trials] tbody tr")].map(
            (row) => [...row.children].map((cell) => cell.innerText.trim()));"""
        return [row for row in self.browser.execute_script(script) if len(row) > 2]

    def test_a_trial_and_several(self):
        self.open_record("/trials/3")
        self.wait_text("Trial 3 of hostile")
        self.wait_painted()
        self.assertNotIn("Output", [one.text for one in self.all("h2")])
        self.wait_text("Decisions about it")
        self.open_record()
        self.button("Compare top 5").click()
        self.wait_text("Compare 5 trials")
        self.wait_painted()

    def test_other_policies_stand_beside_it(self):
        self.open_record("?tab=whatif")
        self.wait_text("Side by side")
        heads = [one.text for one in self.all("section[aria-label=Figures] thead th")]
        self.assertEqual([head.split(",")[0] for head in heads], ["figure", "fixed", "promise_goodput"])
        self.wait_painted("section[aria-label^='Slots under fixed'] canvas")

    def test_axe_finds_nothing_in_light_and_dark(self):
        for dark in (False, True):
            self.size(1400, 1000, dark)
            for tab in ("", "?tab=analysis", "?tab=decisions", "?tab=whatif", "?tab=definition", "/trials/3"):
                with self.subTest(tab=tab, dark=dark):
                    self.open_record(tab)
                    self.wait_for(lambda: self.all(".panel"), "a panel")
                    self.assertEqual(self.axe(), [])
                    self.picture(f"record-{tab.strip('?/').replace('=', '-').replace('/', '-')}-{'dark' if dark else 'light'}")

    def test_it_fits_a_narrow_window(self):
        self.size(320, 700)
        for tab in ("", "?tab=analysis", "?tab=whatif"):
            self.open_record(tab)
            self.wait_for(lambda: self.all(".panel"), "a panel")
            self.assertLessEqual(self.too_wide(), 0, tab)

    def test_its_view_changes_by_the_keyboard(self):
        self.open_record()
        self.wait_painted()
        self.press("d")
        self.wait_for(lambda: self.all("table.decisions tbody tr"), "decisions")
        self.press("?")
        self.wait_text("Decisions of the study")
        self.assertNotIn("go to Pool", self.text())
        self.press(Keys.ESCAPE)

    def test_without_scripts_it_is_tables(self):
        self.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        self.browser.get(self.base)
        document = self.browser.execute_cdp_cmd("DOM.getDocument", {"depth": -1})["root"]
        tables = [node for node in nodes(document, "NOSCRIPT") for node in nodes(node, "TABLE")]
        self.assertTrue(tables, "what stands in noscript is read as HTML")
        told = texts(tables[0])
        for text in (METRIC, "COMPLETE", "PRUNED"):
            self.assertIn(text, told)
        self.assertTrue([text for text in told if KIND in text], told)
        self.assertTrue([text for text in texts(document) if text.endswith(" decisions.")])

    def test_a_notebooks_frame_shows_it(self):
        """A frame that has no origin and no address, as python/espalier/_record.py makes it."""
        outer = self.dir / "notebook.html"
        page = self.file.read_text(encoding="utf-8")
        outer.write_text(f"<!doctype html><meta charset=utf-8><title>n</title><iframe sandbox=\"allow-scripts\" style=\"width:1200px;height:900px\" "
                         f"srcdoc=\"{html.escape(page)}\"></iframe>", encoding="utf-8")
        self.browser.get(outer.as_uri())
        self.browser.switch_to.frame(0)
        self.wait_text("record of a simulation")
        self.wait_painted()
        self.button("Decisions").click()
        self.wait_for(lambda: self.all("table.decisions tbody tr"), "decisions")


# Goes on from its own checkpoint, and stays at its second step until the test lets it go.
BOUNDED = """#!/bin/sh
state=$ESPALIER_CHECKPOINT_DIR/step
step=$(cat $state 2>/dev/null || echo 0)
while [ $step -lt 4 ]; do
  step=$((step + 1))
  tuner tell --step $step --value 0.$((9 - step)) --figure speed=$step$ESPALIER_TRIAL_NUMBER --figure memory_gb=$((3 + (ESPALIER_TRIAL_NUMBER == 1))) || exit 1
  echo $step > $state.tmp && mv $state.tmp $state
  while [ $step -eq 2 ] && [ ! -e {go} ]; do sleep 0.05; done
done
"""


class Report(BrowserTest, TunerTest):
    """What `tuner report` writes of a study that a pool has run: with two metrics, a constraint and a clone."""

    def setUp(self):
        super().setUp()
        self.serve(self.dir / "pool.db")
        self.agent(2, "oak")

    def post(self, path, body):
        return json.load(urllib.request.urlopen(urllib.request.Request(
            f"http://{self.http}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})))

    def record(self):
        """Trial 2 is a clone of trial 0; 1 breaks the constraint."""
        program = self.write("bounded.sh", BOUNDED.format(go=self.dir / "go"), 0o755)
        metrics = [{"name": "loss", "direction": "minimize"}, {"name": "speed", "direction": "maximize"}]
        study = self.study([program], metric=metrics, constraints=["memory_gb <= 3"], trials=2)
        self.run_tuner("submit", study, "--service", self.grpc)
        trials = lambda: self.export("--service", self.grpc)["trials"]
        wait_for(lambda: [len(trial.get("values", [])) for trial in trials()] == [2, 2], "two steps of both")
        # Files of a program's own are a whole checkpoint where it does not run.
        self.post("/api/nodes/oak/drain", {"within_s": 0.1})
        wait_for(lambda: {trial["state"] for trial in trials()} == {"TRIAL_PAUSED"}, "both to be paused")
        clone = self.post(f"/api/trials/{trials()[0]['id']}/clone", {"parameters": {"x": 0.25}})
        self.post("/api/nodes/oak/drain", {"undo": True})
        self.go()
        wait_for(lambda: {trial["state"] for trial in trials()} == {"TRIAL_COMPLETE"}, "all three to end")
        self.run_tuner("report", "e2e", "--service", self.grpc, "--out", self.dir / "report.html")
        return clone["number"]

    def test_metrics_constraint_and_clone_are_shown_from_the_file(self):
        number = self.record()
        self.base = (self.dir / "report.html").as_uri()
        self.open("", "record as of", "2 of 3", "trials keep to memory_gb <= 3", "Best trials of 2 objectives", "1 clone in 1 line")
        self.wait_painted("section[aria-label=Curves] canvas")
        self.wait_painted("section[aria-label=Lineage] canvas")
        self.assertEqual(self.axe(), [])
        self.picture("report")
        metric = self.one("section[aria-label=Curves] select")
        self.assertEqual([one.text for one in metric.find_elements("tag name", "option")], ["loss", "speed"])
        metric.send_keys("speed")
        self.wait_for(lambda: "metric=1" in self.browser.current_url, "the other metric")
        self.wait_painted("section[aria-label=Curves] canvas")
        self.open(f"#/ui/studies/1/trials/{number}", "Clone of trial 0 at step 2, with x = 0.25", "keeps to memory_gb <= 3")
        self.open("#/ui/studies/1/trials/1", "breaks memory_gb <= 3")
        self.open("#/ui/studies/1/trials/0", f"Its clone: trial {number} from step 2")
        self.assertEqual(self.browser.execute_script("return performance.getEntriesByType('resource').length"), 0)
        self.assert_no_errors()


if __name__ == "__main__":
    unittest.main()
