#!/usr/bin/env python3
"""Takes README's picture of the live page: two studies on sixteen emulated slots of two machines. The second one comes once
trials of the first have grown, which then have to give slots back.

usage: scripts/pool_picture.py [OUT.png]      (docs/pool.png; minutes, after the preset `release` is built, or ESPALIER_BIN names
                                               another folder of programs)"""
import base64
import json
import os
import pathlib
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "e2e" / "web"))
os.environ.setdefault("ESPALIER_BIN", str(ROOT / "build/release/bin"))
from environment import run_inside  # noqa: E402

run_inside(os.path.abspath(__file__))

from harness import BIN, TunerTest, wait_for  # noqa: E402
from page_case import BrowserTest  # noqa: E402

WIDTH, HEIGHT = 1400, 880
SLOTS = 8  # of each machine
FIRST, SECOND = ("vision", 16), ("speech", 8)  # studies and how many trials they have
EPOCHS = 14  # of each trial, so that those that stay have time to grow
PATIENCE_S = 900
# So much is to be seen of it. What is shorter does not fill the picture.
GROWN, SHRUNK, RUNNING, LONG_S = 6, 3, 4, 65


class Picture(BrowserTest, TunerTest):
    def runTest(self):
        """Is run by main(), beside no test."""

    def take(self, out):
        self.serve(self.dir / "pool.db")
        self.base = f"http://{self.http}"
        for name in ("oak", "elm"):
            self.agent(SLOTS, name)
        self.submit(*FIRST)
        wait_for(lambda: self.marked("grow"), "a trial that grows", PATIENCE_S)
        self.submit(*SECOND)
        wait_for(self.tells_the_story, f"{GROWN} trials that grew, {SHRUNK} that shrank, {RUNNING} that run", PATIENCE_S)
        self.size(WIDTH, HEIGHT)
        self.browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        self.open("/?w=all", "● live", *(name for name, _ in (FIRST, SECOND)))
        self.wait_painted()
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "optimizeForSpeed": False})
        out.write_bytes(base64.b64decode(shot["data"]))

    def submit(self, name, trials):
        program = [str(BIN / "emulated"), "--profile", str(ROOT / "examples/emulated/profile.json"), "--epochs", str(EPOCHS), "--samples", "6144"]
        study = json.loads((ROOT / "examples/emulated/study.json").read_text()) | {
            "command": program, "name": name, "trials": trials, "max_step": EPOCHS}
        self.run_tuner("submit", self.write(f"{name}.json", study), "--service", self.grpc)

    def view(self, path):
        with urllib.request.urlopen(f"{self.base}/api/view/{path}") as answer:
            return json.load(answer)

    def marked(self, kind):
        """Trials of which the lanes show this decision."""
        return {mark["trial_id"] for mark in self.view("lanes?width=1600")["marks"] if mark["kind"] == kind}

    def tells_the_story(self):
        overview = self.view("overview")
        if not any(study["state"] == "running" for study in overview["studies"]):
            raise SystemExit("Both studies have ended with less to be seen than is wanted: try again when the machine has less to do.")
        lanes = self.view("lanes?width=1600")
        if lanes["now"] - min(lanes["spans"]["from"]) < LONG_S:
            return False
        running = {use["trial_id"] for node in overview["pool"]["nodes"] for use in node["slot_use"]}
        return len(self.marked("grow")) >= GROWN and len(self.marked("shrink")) >= SHRUNK and len(running) >= RUNNING


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/pool.png").resolve()
    picture = Picture()
    picture.setUp()
    try:
        picture.take(out)
    finally:
        picture.doCleanups()
        picture.tearDown()
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
