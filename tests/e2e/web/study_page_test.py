"""The page of a study in a headless Chromium, before a made-up pool."""
import environment

environment.run_inside(__file__)

import csv
import json
import pathlib
import struct
import tempfile
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from fixture_world import SeveralObjectives, World
from study_case import TABLE, StudyTest

ROW_PX = 28
HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>", "=cmd()", "right\u202eto left", "../..", "%00", "x" * 5000]


class Shown(StudyTest):
    def test_a_study_in_figures_curves_slots_and_rows(self):
        fixture = self.open_study("", None, "Slots of this study", "Promise × goodput")
        self.wait_painted()
        row = fixture.world.overview()["studies"][0]
        self.assertIn(f"trial {row['best']['trial']}", self.text())
        self.assertEqual(self.count(), 40)
        self.assertEqual(self.numbers()[:3], [39, 38, 37])
        self.assertIn(f"20 curves of", self.text())
        self.picture("study")
        self.assert_no_errors()

    def test_a_study_without_trials_says_what_comes_next(self):
        world = World()
        for trial in world.studies[0]["trials"]:
            trial["spans"].clear()
        world.studies[0]["trials"].clear()
        world.decisions = [decision for decision in world.decisions if decision["study_id"] != 1]
        self.open_study("", world, "No trial yet.", "No trial has reported a value yet.", "No trial runs now.")
        self.assert_no_errors()

    def test_clients_studies_have_no_slots(self):
        self.serve()
        self.open("/ui/studies/3", "digits", "Curves")
        self.one(TABLE)
        for absent in ("Slots of this study", "Promise × goodput", "slot-s"):
            self.assertNotIn(absent, self.text())
        self.assertEqual(self.all(".row-menu"), [])

    def test_several_objectives_have_columns_and_no_curves(self):
        self.open_study("", SeveralObjectives(), "Trials of several objectives report no values on the way", "value 2", "objectives, so that no trial")
        self.assert_no_errors()

    def test_hostile_and_endless_names(self):
        for number, name in enumerate(HOSTILE):
            with self.subTest(name[:20]):
                world = World(trials=5, studies=1, names={"study0": name})
                world.trials[0]["parameters"]["rule"] = "linear"
                self.open_study("", world)
                self.size(320)
                self.assertLessEqual(self.too_wide(), 0)
                self.open("/ui/studies/1?tab=definition", "Search space")
                self.assertLessEqual(self.too_wide(), 0)
                self.open("/ui/studies/1/trials/2", "Parameters")
                self.assertLessEqual(self.too_wide(), 0)
                self.picture(f"hostile-{number}")
        self.assert_no_errors()

    def test_a_study_that_is_not_there(self):
        self.serve()
        self.open("/ui/studies/99", "The study could not be read")

    def test_whose_session_has_ended_is_led_to_the_login_and_back(self):
        self.open_study("?f=state%3A+failed")
        self.fixture.broken["/api/view/overview"] = 401
        self.fixture.changed()
        self.wait_for(lambda: self.path() == "/login", "the login")
        self.assertEqual(self.query(), {"to": "/ui/studies/1?f=state%3A+failed"})

    def test_no_barriers_that_can_be_found(self):
        self.serve()
        places = {"study": "/ui/studies/1?f=state%3A+complete&chosen=3,9", "decisions": "/ui/studies/1?tab=decisions",
                  "definition": "/ui/studies/1?tab=definition", "trial": "/ui/studies/1/trials/38", "compare": "/ui/compare?t=9,12,20"}
        for name, path in places.items():
            for width, dark in ((1400, False), (320, True)):
                with self.subTest(name, width=width, dark=dark):
                    self.size(width, dark=dark)
                    self.open(path)
                    self.wait_no_text("Reading …")
                    self.wait_for(lambda: len(self.text()) > 300, "the page")
                    self.assertEqual(self.axe(), [])
                    self.assertLessEqual(self.too_wide(), 0)
                    self.picture(f"{name}-{width}{'-dark' if dark else ''}")
        self.assert_no_errors()


class Table(StudyTest):
    def test_filters_are_seen_in_the_address_and_taken_off(self):
        fixture = self.open_study("?f=state%3A+failed")
        failed = sum(trial["state"] == "failed" for trial in fixture.world.studies[0]["trials"])
        self.wait_for(lambda: self.count() == failed, "failed trials alone")
        self.assertTrue(all("failed" in row for row in self.rows()))
        self.button("Take off the filter state: failed").click()
        self.wait_for(lambda: self.count() == 40, "all trials")
        self.assertNotIn("f", self.query())
        self.browser.back()
        self.wait_for(lambda: self.count() == failed, "the filter again")

    def test_a_filter_is_made_by_the_keyboard(self):
        self.open_study()
        self.focus_by_tab("button.add", 90)
        self.press(Keys.ENTER)
        Select(self.one(".chip-editor select")).select_by_visible_text("lr")
        self.focus_by_tab(".chip-editor input")
        self.press("0.001", Keys.TAB, "0.05", Keys.ENTER)
        self.wait_for(lambda: self.query().get("f") == "p:lr 0.001..0.05", "the address")
        wanted = [trial for trial in self.fixture.world.studies[0]["trials"] if 0.001 <= trial["parameters"]["lr"] <= 0.05]
        self.wait_for(lambda: self.count() == len(wanted), "trials of this range")

    def test_filters_that_nothing_meets_say_so(self):
        self.open_study("?f=state%3A+complete%3B+value+99..", None, "none meets all filters")

    def test_what_is_no_filter_is_told(self):
        self.open_study("?f=value+abc", None, "value needs a range such as 1e-4..1e-2")
        self.assertEqual(self.count(), 40)

    def test_order_and_columns_are_in_the_address(self):
        fixture = self.open_study()
        head = self.wait_for(lambda: next((one for one in self.all("button.head") if one.text.startswith("accuracy")), None), "the head")
        head.click()
        self.assertEqual(self.query()["sort"], "-value")
        values = {trial["number"]: fixture.world.value(trial) for trial in fixture.world.studies[0]["trials"]}
        known = sorted((number for number in values if values[number] is not None), key=lambda number: -values[number])
        self.wait_for(lambda: self.numbers()[:5] == known[:5], "the best on top")
        self.assertEqual(self.one("th[aria-sort]").get_attribute("aria-sort"), "descending")
        self.button("Columns").click()
        self.button("rule further left").click()
        self.one("dialog input[type=checkbox]").click()  # the state's
        self.button("Done").click()
        columns = self.query()["cols"].split(",")
        self.assertNotIn("state", columns)
        self.assertEqual(columns.index("p:rule") + 1, columns.index("p:layers"))
        self.browser.refresh()
        self.wait_for(lambda: self.numbers()[:5] == known[:5], "the same after a reload")
        heads = [one.text for one in self.all("table.virtual thead th")]
        self.assertEqual([heads.index("rule") + 1, "state" in heads], [heads.index("layers"), False])

    def test_rows_by_the_keyboard(self):
        self.open_study()
        self.press("j", "j", "j", "k")
        self.wait_for(lambda: self.one("tr.current").text.split()[0] == "38", "the second row")
        self.press(" ", "j", " ")
        self.wait_for(lambda: self.query().get("chosen") == "39,38", "two chosen")
        self.press(Keys.END)
        self.wait_for(lambda: self.one("tr.current").text.split()[0] == "0", "the last row")
        current = self.one(TABLE).get_attribute("aria-activedescendant")
        self.assertEqual(self.browser.execute_script("return document.getElementById(arguments[0]).className.trim()", current), "current")
        self.press(Keys.ENTER)
        self.wait_for(lambda: self.path() == "/ui/studies/1/trials/0", "its page")
        self.wait_text("Trial 0 of")
        self.browser.back()
        self.one(TABLE)
        self.press("c")
        self.wait_for(lambda: self.path() == "/ui/compare", "the comparison")

    def test_a_row_points_at_its_curve_and_a_curve_at_its_row(self):
        self.open_study("?sort=-value&top=5")
        self.wait_painted()
        overlay = self.one("section[aria-label=Curves] .plot-overlay")
        self.browser.execute_script("arguments[0].focus()", overlay)
        self.press(Keys.ARROW_DOWN)
        hovered = self.one("tr.hovered").text.split()[0]
        self.wait_for(lambda: f"trial {hovered}," in self.said(), "the same trial in words")
        self.press(Keys.ESCAPE)
        painted = """const canvas = document.querySelectorAll("section[aria-label=Curves] canvas")[1];
            return new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer).some((one) => one);"""
        self.wait_for(lambda: not self.browser.execute_script(painted), "nothing pointed at")
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.one(".table-scroll"))
        ActionChains(self.browser).move_to_element(self.row(int(hovered))).perform()
        self.wait_for(lambda: self.browser.execute_script(painted), "the curve of the row")

    def test_new_trials_move_nothing_that_is_looked_at(self):
        fixture = self.open_study("?f=state%3A+complete%2C+pruned%2C+failed&zoom=4..9", World(trials=3000, studies=1))
        self.wait_for(lambda: self.count() > 2000, "the rows")
        box = self.one(".table-scroll")
        self.browser.execute_script("arguments[0].scrollTop = 100 * 28 + 5", box)
        first = "const top = arguments[0].scrollTop; return [...arguments[0].querySelectorAll('tr[aria-rowindex]')].slice(1)" \
                ".map((row) => [row.innerText.split(/\\s/)[0], row.offsetTop - top]).find((one) => one[1] > 0)"
        self.wait_for(lambda: self.browser.execute_script("return arguments[0].querySelectorAll('tr[aria-rowindex=\"110\"]').length", box), "the place")
        before, count, address = self.browser.execute_script(first, box), self.count(), self.browser.current_url
        # What a person holds on to.
        self.press("j")
        asked = self.asked()
        added = [fixture.world.add_trial(1, "failed")["id"] for _ in range(7)]
        self.browser.execute_script("arguments[0].scrollTop = 100 * 28 + 5", box)
        fixture.changed(added)
        self.wait_for(lambda: self.count() == count + 7, "the new trials")
        self.assertEqual(self.browser.execute_script(first, box), before)
        self.assertEqual(self.browser.current_url, address)
        self.assertEqual(self.browser.execute_script("return arguments[0].scrollTop", box), 107 * ROW_PX + 5)
        # And only what changed was asked for.
        self.assertTrue(asked and all("changed_since" in query for path, query in asked if path.endswith("/trials")), asked)

    def test_trials_of_another_service_are_read_anew(self):
        """Its revisions may be any, and what it has may have changed in any row."""
        fixture = self.open_study()
        fixture.world.trials[36]["state"] = "paused"
        fixture.world.incarnation = "00ff"
        asked = self.asked()
        fixture.changed()
        self.wait_for(lambda: "paused" in self.row(36).text, "what no event has told of")
        self.assertTrue(any("from" in query for path, query in asked if path.endswith("studies/1/trials")), asked)

    def test_the_table_as_a_file_that_runs_nothing(self):
        world = World(trials=6, studies=1)
        world.add_trial(1, "failed", rule="sqrt")
        self.open_study("?cols=state,reason,p:lr", world)
        with tempfile.TemporaryDirectory(prefix="espalier-csv-") as folder:
            self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
            self.press("e")
            file = self.wait_for(lambda: next(iter(pathlib.Path(folder).glob("*.csv")), None), "the file")
            with open(file, newline="", encoding="utf-8") as told:
                rows = list(csv.reader(told))
        self.assertEqual(rows[0], ["number", "state", "reason", "p:lr"])
        self.assertEqual(rows[1], ["6", "failed", "rank 0 ended with signal 9 (out of memory)", "0.01"])
        self.assertEqual(len(rows), 8)


class Curves(StudyTest):
    def test_what_is_chosen_about_them_is_in_the_address(self):
        self.open_study()
        self.wait_painted()
        panel = self.one("section[aria-label=Curves]")
        for label, value in (("x", "slot-seconds"), ("show", "top 5"), ("smooth", "0.9")):
            select = next(one for one in panel.find_elements(By.CSS_SELECTOR, "label.tool") if one.text.startswith(label))
            Select(select.find_element(By.TAG_NAME, "select")).select_by_visible_text(value)
        self.button("log y").click()
        self.button("all values").click()
        wanted = {"x": "slot_seconds", "top": "5", "smooth": "0.9", "log": "y", "range": "all"}
        self.wait_for(lambda: self.query() == wanted, "the address")
        self.wait_text("5 curves of")
        self.browser.refresh()
        self.wait_text("5 curves of")
        self.assertEqual(self.query(), wanted)

    def test_zoom_is_in_the_address_and_detail_is_asked_for(self):
        self.open_study()
        self.wait_painted()
        asked = self.asked()
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label=Curves] .plot-overlay"))
        self.press("+")
        self.wait_for(lambda: "zoom" in self.query(), "the zoom")
        low, high = map(float, self.query()["zoom"].split(".."))
        part = self.wait_for(lambda: next((query for path, query in asked if path.endswith("/curves") and "from" in query), None), "detail")
        self.assertEqual([float(part["from"][0]), float(part["to"][0])], [low, high])
        self.press("0")
        self.wait_for(lambda: "zoom" not in self.query(), "all of it")

    def test_the_same_as_a_table(self):
        self.open_study("?top=5")
        self.wait_painted()
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label=Curves] .plot-overlay"))
        self.press("t")
        self.wait_for(lambda: len(self.all("section[aria-label=Curves] tbody tr")) == 5, "five rows")

    def test_the_picture_as_a_file(self):
        self.open_study()
        self.wait_painted()
        with tempfile.TemporaryDirectory(prefix="espalier-png-") as folder:
            self.browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
            self.button("PNG").click()
            file = self.wait_for(lambda: next(iter(pathlib.Path(folder).glob("resnet18-curves.png")), None), "the file")
            self.wait_for(lambda: file.stat().st_size, "what is in it")
            picture = file.read_bytes()
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", picture[16:24])
        area = self.one("section[aria-label=Curves] .plot-area").size
        self.assertEqual((width, height), (area["width"] + 16, area["height"] + 16))
        # White with nothing on it would be far smaller.
        self.assertGreater(len(picture), 10_000)

    def test_a_report_is_drawn_before_the_next_answer(self):
        fixture = self.open_study("?chosen=38&top=chosen")
        self.wait_text("1 curve of")
        trial = fixture.world.trials[37]
        points = fixture.world.curve(trial)
        self.wait_text(f"of {len(points)} values")
        fixture.broken["/api/view/studies/1/curves"] = 503
        fixture.send("values", {"trial_id": [38], "study_id": [1], "number": [37], "step": [points[-1][0] + 1], "value": [0.9],
                                "at": [fixture.world.now()], "batch_size": [64], "promise": [0.5], "goodput": [900]})
        self.wait_text(f"of {len(points) + 1} values")

    def test_the_best_five_beside_one_another(self):
        fixture = self.open_study()
        self.wait_painted()
        self.press("5", "c")
        self.wait_for(lambda: self.path() == "/ui/compare", "the comparison")
        ids = [int(one) for one in self.query()["t"].split(",")]
        answer = fixture.world.curves(1, best=5)
        self.assertEqual(ids, [curve["trial_id"] for curve in answer["curves"]])
        self.wait_text("Compare 5 trials")
        self.wait_text("What differs")

    def test_promise_and_goodput_now_and_over_time(self):
        fixture = self.open_study()
        running = sorted((t for t in fixture.world.studies[0]["trials"] if t["state"] == "running"), key=lambda t: -t["level"])
        panel = self.one("section[aria-label='Promise and goodput']")
        self.wait_for(lambda: [row.text.split()[0] for row in panel.find_elements(By.CSS_SELECTOR, "tbody tr")] ==
                      [str(trial["number"]) for trial in running], "the most promising first")
        fixture.send("live", {"now": fixture.world.now(), "trial_id": [running[-1]["id"]], "slots": [4], "promise": [0.99], "goodput": [5000.0],
                              "batch_size": [64], "throughput": [6000.0]})
        self.wait_for(lambda: panel.find_element(By.CSS_SELECTOR, "tbody tr").text.split()[:2] == [str(running[-1]["number"]), "0.99"],
                      "the figures of this second")
        self.button("promise over time").click()
        self.wait_painted("section[aria-label='Promise and goodput'] canvas")
        self.assertEqual(self.query()["pg"], "promise")


class Actions(StudyTest):
    def test_cancelling_can_be_taken_back_for_a_while(self):
        fixture = self.open_study()
        first, second = 38, 37
        self.row(first).find_element(By.CSS_SELECTOR, ".row-menu").click()
        self.button("Cancel trial").click()
        self.wait_text(f"Trial {first} is cancelled in 5 s")
        self.button("Undo").click()
        self.wait_no_text("is cancelled in 5 s")
        self.row(second).click()
        self.press("x")
        self.wait_text(f"Trial {second} is cancelled in 5 s")
        # The first would have been sent before.
        self.wait_for(lambda: fixture.writes, "the second")
        self.assertEqual(fixture.writes, [(f"/api/trials/{second + 1}/cancel", {"state": "pruned", "reason": "cancelled on the page"})])
        self.wait_no_text("is cancelled in 5 s")

    def test_a_trial_is_pinned_by_three_keys(self):
        fixture = self.open_study()
        self.press("j", "j", "p", "4", Keys.ENTER)
        self.wait_for(lambda: fixture.writes == [("/api/trials/39/pin", {"slots": 4})], "the pin")
        self.wait_for(lambda: not self.all("dialog"), "no dialog")

    def test_the_dialog_of_a_trial_says_what_it_is_now(self):
        fixture = self.open_study()
        self.press("j", "j", "p")
        self.wait_text("The allocator decides")
        fixture.world.trials[38]["pinned"] = 2
        fixture.changed([39])
        self.wait_text("Pinned at 2 slots.")
        self.button("Unpin").click()
        self.wait_for(lambda: fixture.writes == [("/api/trials/39/pin", {"slots": 0})], "no pin")

    def test_more_slots_than_there_are_cannot_be_pinned(self):
        self.open_study()
        self.press("j", "j", "p", "99")
        self.wait_text("The pool has 32 slots: write a number from 1 to 32.")
        self.press(Keys.ENTER)
        self.assertEqual(self.fixture.writes, [])

    def test_a_study_is_stopped_after_a_question_and_a_refusal_is_told(self):
        fixture = self.open_study("", World(names={"study0": "a/b c%"}))
        fixture.broken["/api/studies/a%2Fb%20c%25/stop"] = 409
        self.button("Stop").click()
        self.button("Stop the study").click()
        self.wait_text("is broken in this test")
        fixture.broken.clear()
        self.button("Stop the study").click()
        self.wait_for(lambda: fixture.writes == [("/api/studies/a%2Fb%20c%25/stop", {})], "the stop")

    def test_an_ended_study_is_resumed_with_more_trials(self):
        world = World()
        world.studies[0]["state"] = "complete"
        self.open_study("", world)
        self.button("Resume").click()
        self.press("300", Keys.ENTER)
        self.wait_for(lambda: self.fixture.writes == [("/api/studies/resnet18/resume", {"max_trials": 300})], "the resume")

    def test_a_trial_of_ones_own_is_enqueued(self):
        fixture = self.serve()
        self.open("/ui/studies/3", "● live", "trials")
        self.press("n")
        self.wait_text("a whole number from 1 to 8")
        self.picture("enqueue")
        self.assertEqual(self.axe(), [])
        self.press("2", Keys.ENTER)
        self.wait_text('lr: want a number from 0.00001 to 0.1, got "2"')
        self.press(Keys.BACKSPACE, "0.05", Keys.TAB, Keys.TAB, "s")
        self.focus_by_tab(".enqueue-field + .enqueue-field input")
        self.press("5", Keys.ENTER)
        # What the service refuses is told in its words.
        self.wait_text('parameter "layers": 5 is not in the space')
        self.press(Keys.BACKSPACE, "6", Keys.ENTER)
        self.wait_for(lambda: not self.all("dialog"), "no dialog")
        self.assertEqual(fixture.writes[-1], ("/api/studies/digits/enqueue", {"parameters": {"lr": 0.05, "layers": 6, "rule": "sqrt"}}))
        number = fixture.world.trials[-1]["number"]
        self.assertEqual(self.said(), f"Trial {number} waits")
        self.row(number)

    def test_what_is_refused_after_the_form_is_closed_is_shown(self):
        fixture = self.serve()
        self.open("/ui/studies/3", "● live", "trials")
        fixture.answers.clear()
        self.press("n")
        self.wait_text("a whole number from 1 to 8")
        self.press("0.05", Keys.TAB, "5", Keys.ENTER)
        self.wait_for(lambda: fixture.writes, "the question")
        self.press(Keys.ESCAPE)
        self.wait_for(lambda: not self.all("dialog"), "no dialog")
        self.press("n")
        self.wait_text("a whole number from 1 to 8")
        fixture.answers.set()
        self.wait_for(lambda: 'The trial was not enqueued: parameter "layers": 5 is not in the space' in self.one(".undo-bar").text, "the refusal")
        self.assertTrue(self.all("dialog"), "the other form is still open")
        self.wait_for(lambda: self.browser.execute_script(
            "return document.querySelector('dialog [aria-live]').textContent").startswith("The trial was not enqueued: "), "it said in the form")
        self.press(Keys.ESCAPE)
        self.wait_for(lambda: not self.all("dialog"), "no dialog")
        self.button("Close").click()
        self.wait_for(lambda: not self.all(".undo-bar"), "no refusal")

    def test_a_trial_whose_slots_were_taken_may_have_been_deleted(self):
        world = World()
        grown = next(one for one in world.decisions if one["kind"] == "grow" and one["study_id"] == 1)
        grown["figures"]["from"][0].update(trial=None, study_id=None)
        self.serve(world)
        self.open("/ui/studies/1?tab=decisions", "● live", "a trial that has been deleted (")
        self.open(f"/ui/studies/1?why={grown['trial_id']}@{grown['at']:.1f}", "a trial that has been deleted (")
        self.assertEqual(self.all("a[href*=null]"), [])

    def test_studies_that_draw_for_the_pool_take_no_trials(self):
        self.open_study()
        self.assertEqual([button.text for button in self.all(".study-actions button")], ["Stop"])

    def test_who_may_only_look_has_no_buttons(self):
        world = World()
        world.role = "view"
        self.open_study("", world)
        self.assertEqual(self.all(".row-menu, .study-actions"), [])
        self.press("j", "j", "x")
        self.assertNotIn("is cancelled", self.text())

    def test_notes_are_written_and_kept_until_they_are_saved(self):
        fixture = self.open_study()
        self.button("Write a note").click()
        self.press("the <b>best</b> so far", Keys.ENTER, "with warm-up")
        fixture.changed()
        fixture.broken["/api/studies/resnet18/note"] = 400
        self.button("Save").click()
        self.wait_text("is broken in this test")
        fixture.broken.clear()
        self.button("Save").click()
        self.wait_for(lambda: fixture.writes == [("/api/studies/resnet18/note", {"text": "the <b>best</b> so far\nwith warm-up"})], "the note")
        fixture.world.notes["study 1"] = fixture.writes[0][1]["text"]
        fixture.changed()
        self.wait_text("the <b>best</b> so far\nwith warm-up")
        self.open("/ui/studies/1/trials/38", "Trial 38 of")
        self.button("Write a note").click()
        self.press("as well")
        self.button("Save").click()
        self.wait_for(lambda: fixture.writes[1:] == [("/api/trials/39/note", {"text": "as well"})], "the trial's note")
        self.wait_text("as well")

    def test_the_best_parameters_are_copied(self):
        fixture = self.open_study()
        self.browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.wait_for(lambda: self.button("copy its parameters"), "the best trial's row")
        self.press("y")
        self.wait_text("copied")
        told = self.browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
        best = fixture.world.overview()["studies"][0]["best"]
        self.assertEqual(json.loads(told), fixture.world.trials[best["trial_id"] - 1]["parameters"])

    def test_where_a_page_may_not_copy_it_shows_the_text(self):
        self.open_study()
        self.browser.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
        self.button("copy its parameters").click()
        self.assertIn('"lr":', self.one("dialog textarea").get_attribute("value"))


class Decided(StudyTest):
    def test_decisions_with_their_figures_page_by_page(self):
        self.serve(World(trials=200, studies=1))
        self.open("/ui/studies/1?tab=decisions", "Decisions")
        rows = "table.decisions tbody tr"
        self.wait_for(lambda: len(self.all(rows)) == 200, "the newest 200")
        self.button("Older decisions").click()
        self.wait_for(lambda: len(self.all(rows)) == 400, "200 more")
        Select(self.one("section[aria-label=Decisions] select")).select_by_visible_text("grow")
        self.wait_for(lambda: self.all(rows) and all(" grow " in row.text for row in self.all(rows)[:20]), "those that grew")
        self.assertIn("promise 0.07", self.all(rows)[0].text)
        self.assertEqual(self.query(), {"tab": "decisions", "kind": "grow"})
        self.assert_no_errors()


if __name__ == "__main__":
    unittest.main()
