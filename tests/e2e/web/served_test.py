"""The pages that `tuner serve` has in it, in a headless Chromium, on a pool of two agents with real trials."""
import environment

environment.run_inside(__file__)

import gzip
import json
import re
import unittest
import urllib.error
import urllib.request

from selenium.webdriver.common.keys import Keys

from harness import TunerTest, kill, wait_for
from page_case import BrowserTest

CLIENTS_STUDY = '{"name": "clients", "ask_and_tell": true, "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}}'
POLICY = "require-trusted-types-for 'script'; trusted-types 'none'"


class Served(BrowserTest, TunerTest):
    def setUp(self):
        super().setUp()
        self.database = self.dir / "pool.db"
        self.service = self.serve(self.database)
        self.base = f"http://{self.http}"

    def get(self, path, **headers):
        return urllib.request.urlopen(urllib.request.Request(self.base + path, headers=headers))

    def overview(self):
        return json.load(self.get("/api/view/overview"))

    def two_nodes_with_trials(self):
        for name in ("oak", "elm"):
            self.agent(2, name)
        program = self.resumable_trial(steps=10, pause=0.05, also=self.until_go())
        self.run_tuner("submit", self.study([program]), "--service", self.grpc)
        wait_for(lambda: self.overview()["pool"]["held"] == 4, "four slots that are held")

    def test_files_come_packed_and_stay(self):
        page = self.get("/")
        self.assertIn(POLICY, page.headers["Content-Security-Policy"])
        self.assertEqual(page.headers["X-Content-Type-Options"], "nosniff")
        names = re.findall(r"ui-assets/(app\.[0-9a-f]{16}\.(?:js|css))", page.read().decode())
        self.assertEqual(len(names), 2)
        for name in names:
            plain = self.get(f"/ui-assets/{name}")
            self.assertIn("immutable", plain.headers["Cache-Control"])
            body = plain.read()
            packed = self.get(f"/ui-assets/{name}", **{"Accept-Encoding": "gzip"})
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(gzip.decompress(packed.read()), body)
            self.assertEqual(self.get(f"/ui-assets/{name}", **{"Accept-Encoding": "br"}).headers["Content-Encoding"], "br")
        with self.assertRaises(urllib.error.HTTPError) as missing:
            self.get("/ui-assets/app.0000000000000000.js")
        self.assertEqual(missing.exception.code, 404)
        missing.exception.close()

    def test_a_pool_at_work_is_shown_live(self):
        self.open("/", "No machine has joined", "● live")
        self.two_nodes_with_trials()
        self.wait_text("4 of 4 slots held by 4 trials")
        self.wait_text("oak")
        self.wait_painted()
        self.browser.execute_script("arguments[0].focus()", self.one(".plot-overlay"))
        self.press(Keys.ARROW_RIGHT)
        self.wait_for(lambda: re.match(r"trial \d of e2e on (oak|elm):\d", self.said()), "a trial's bar")
        self.press(Keys.ENTER)
        self.wait_for(lambda: self.all(".why") and "started" in self.one(".why").text, "why it runs there")
        self.go()
        self.wait_text("0 of 4\nslots held")
        self.assert_no_errors()
        self.picture("served_pool")

    def test_who_follows_a_log_is_sent_what_is_new(self):
        self.agent(1, "oak")
        program = self.resumable_trial(steps=8, pause=0.01, also=f"echo line $step; {self.until_go()}")
        self.run_tuner("submit", self.study([program], trials=1), "--service", self.grpc)
        def answer(after=""):
            """No headers: its agent has not answered in time."""
            try:
                with self.get(f"/api/trials/1/output{after}") as told:
                    return told.read().decode(), told.headers
            except urllib.error.HTTPError as refused:
                with refused:
                    if refused.code != 404:
                        raise
                return "", {}
        def any_answer(after):
            return wait_for(lambda: (told := answer(after))[1] and told, f"an answer to {after}")
        wait_for(lambda: self.overview()["studies"][0]["trials"]["running"] == 1, "the trial to run")
        first, headers = wait_for(lambda: (told := answer())[0].endswith("line 5\n") and told, "five lines")
        self.assertEqual(headers["X-Start"], "0")
        self.assertEqual(any_answer(f"?after={headers['X-Next']}")[0], "")
        self.go()
        more, grown = wait_for(lambda: (told := answer(f"?after={headers['X-Next']}"))[0].endswith("line 8\n") and told, "the others")
        self.assertEqual(more, "line 6\nline 7\nline 8\n")
        self.assertEqual(int(grown["X-Start"]), len(first))
        self.assertEqual(any_answer("?after=7-7")[1]["X-Start"], "0")

    def test_a_node_is_drained(self):
        self.two_nodes_with_trials()
        self.open("/ui/cluster", "oak", "● live")
        self.browser.execute_script("""[...document.querySelectorAll("tr")].find(
            (row) => row.innerText.startsWith("oak")).querySelector("button").click();""")
        self.wait_text("Empty oak?")
        self.button("Drain").click()
        self.wait_text("draining")
        self.assertTrue([node["draining"] for node in self.overview()["pool"]["nodes"] if node["name"] == "oak"][0])
        self.button("Take it back").click()
        self.wait_no_text("draining")

    def test_a_browser_that_open_has_started_asks_for_no_token(self):
        token = self.write("token", "a-token-of-the-test-that-is-long-enough\n", 0o600)
        self.grpc, self.http = self.held_address(), self.held_address()
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "closed.db", "--token-file", token)
        wait_for(lambda: "\ndatabase " in self.output(service), "the service to say where it is")
        self.base = f"http://{self.http}"
        study, where = self.write("study.json", CLIENTS_STUDY), ("--service", self.grpc, "--token-file", token)
        self.run_tuner("submit", study, *where)
        browser = self.write("browser.sh", f"#!/bin/sh\necho \"$1\" > {self.dir}/opened.new\n"
                                           f"mv {self.dir}/opened.new {self.dir}/opened\n", 0o755)
        self.run_tuner("open", "clients", *where, env={"BROWSER": str(browser)})
        wait_for((self.dir / "opened").exists, "the browser to be started")
        address = (self.dir / "opened").read_text().strip()
        self.browser.get(address)
        self.wait_for(lambda: self.browser.current_url == f"{self.base}/ui/studies/1", "the study's page")
        self.wait_text("clients")
        self.wait_text("● live")
        self.assert_no_errors()
        self.browser.delete_all_cookies()
        self.browser.get("about:blank")
        self.browser.get(address)
        self.wait_text("this code begins no session: it is used")
        self.assertNotIn("#", self.browser.current_url)
        self.assertTrue(self.one("#token").is_displayed())

    def test_a_service_that_is_killed_comes_back_on_the_open_page(self):
        self.open("/ui/cluster", "No machine has joined", "● live")
        kill(self.service.pid)
        self.service.wait()
        self.serve(self.database, self.grpc, self.http)
        self.agent(2, "ash")
        self.wait_text("ash")
        self.wait_text("● live")


if __name__ == "__main__":
    unittest.main()
