"""The pages of the pool and of its machines in a headless Chromium, before a made-up pool."""
import environment

environment.run_inside(__file__)

import re
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fixture_world import World
from page_case import PageTest

OVERLAY = ".plot-overlay"
# What a name or a text may try.
HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(2)>", "javascript:alert(3)", "</script><script>alert(4)</script>",
           "right\u202eto left", "line\u2028end", "=cmd()", "../..", "%00", "x" * 10_000, "\U0001f600 emoji", "{{constructor}}"]


class Pool(PageTest):
    def alert(self, text):
        self.fixture.world.alerts.append({"at": self.fixture.world.now(), "level": "error", "text": text, "study_id": 1,
                                          "study": self.fixture.world.studies[0]["name"], "trial_id": 1, "trial": 0})

    def test_says_who_holds_the_slots_and_follows(self):
        fixture = self.serve()
        self.open("/", "slots held", "resnet18", "● live")
        self.wait_painted()
        held = fixture.world.overview()["pool"]["held"]
        self.assertIn(f"{held} of 32", self.text())
        self.assertIn(f"{held} of 32 slots held by", self.text())
        before = fixture.reads["/api/view/overview"]
        self.alert("CUDA out of memory")
        self.assertNotIn("CUDA out of memory", self.text())
        fixture.changed()
        self.wait_text("CUDA out of memory")
        self.assertGreater(fixture.reads["/api/view/overview"], before)
        self.assert_no_errors()

    def test_many_events_are_few_reads(self):
        fixture = self.serve()
        self.open("/", "● live")
        before = fixture.reads["/api/view/overview"]
        for _ in range(200):
            fixture.changed()
        self.alert("the last of them")
        fixture.changed()
        self.wait_text("the last of them")
        # The first at once, and one half a second later for the rest.
        self.assertLessEqual(fixture.reads["/api/view/overview"] - before, 8)

    def test_a_bar_tells_why_and_the_address_keeps_it(self):
        fixture = self.serve()
        self.open("/", "● live")
        self.wait_painted()
        overlay = self.one(OVERLAY)
        ActionChains(self.browser).move_to_element_with_offset(overlay, 100, 0).click().perform()
        card = self.one(".why")
        self.wait_for(lambda: "decision" in card.text, "the decision")
        trial, at = self.browser.current_url.split("why=")[1].split("%40")
        decided = [one for one in fixture.world.decided(trial=int(trial))["decisions"] if one["at"] <= float(at) + 1.5][0]
        self.assertIn(decided["reason"], card.text)
        self.assertIn(f"trial {decided['trial']} of {decided['study']}", card.text)
        text = card.text
        self.browser.get(self.browser.current_url)
        self.wait_for(lambda: self.all(".why") and self.one(".why").text == text, "the same card")
        self.button("Close").click()
        self.wait_for(lambda: not self.all(".why"), "no card")
        self.assertNotIn("why=", self.browser.current_url)

    def test_zoom_stays_when_data_come(self):
        fixture = self.serve()
        self.open("/", "● live")
        self.wait_painted()
        self.button("Zoom in").click()
        self.wait_for(lambda: "t=" in self.browser.current_url, "a zoom in the address")
        zoomed = self.browser.current_url
        self.alert("something else")
        fixture.changed()
        self.wait_text("something else")
        self.assertEqual(self.browser.current_url, zoomed)
        self.button("All").click()
        self.wait_for(lambda: "t=" not in self.browser.current_url, "all of it")

    def test_the_best_value_over_time(self):
        fixture = self.serve()
        told = fixture.world.improvements(fixture.world.studies[0])
        self.open("/", "● live")
        # Studies of one moment are listed newest first.
        line = lambda: self.one(".studies tbody tr:last-child .sparkline").get_attribute("aria-label")
        self.assertRegex(line(), rf"Best from 0\.\d+ to 0\.\d+ in {len(told['at']) - 1} steps?")
        reads = fixture.reads["/api/view/studies/1/analysis"]
        self.alert("something else")
        fixture.changed()
        self.wait_text("something else")
        self.assertEqual(fixture.reads["/api/view/studies/1/analysis"], reads, "it is the same best")
        better = fixture.world.add_trial(1, "complete")
        better.update({"level": 3.0, "steps": 40, "started_at": fixture.world.now() - 60, "ended_at": fixture.world.now() - 1,
                       "spans": [{"from": fixture.world.now() - 60, "to": fixture.world.now() - 1, "node": 0, "slot": 0}]})
        fixture.changed([better["id"]])
        self.wait_for(lambda: f"in {len(told['at'])} steps" in line(), "one step more")
        self.assertEqual(fixture.reads["/api/view/studies/1/analysis"], reads + 1)

    def test_lanes_by_study(self):
        fixture = self.serve()
        self.open("/", "● live")
        self.one("[aria-label='group by'] button:nth-of-type(2)").click()
        self.wait_for(lambda: [one.text for one in self.all(".lane-fold")] == ["▾ resnet18", "▾ char_lm", "▾ digits"], "a block of lanes for each study")
        self.assertIn("group=study", self.browser.current_url)
        self.wait_painted()
        self.picture("pool_by_study")
        # Bars are told by their places all the same, and are opened as before.
        self.browser.execute_script("arguments[0].focus()", self.one(OVERLAY))
        self.press(Keys.ARROW_RIGHT)
        self.wait_for(lambda: re.match(r"trial \d+ of resnet18 on n\d:\d", self.said()), "a bar of the first study")
        self.press(Keys.ENTER)
        self.one(".why")
        self.one(".lane-fold").click()
        self.wait_for(lambda: "foldstudy=resnet18" in self.browser.current_url, "a folded study in the address")
        self.assertEqual(len(fixture.writes), 0)

    def test_a_zoomed_picture_tells_of_its_own_end(self):
        fixture = self.serve()
        start = fixture.world.start
        self.open(f"/?w=all&t={start + 60:.0f}..{start + 600:.0f}", "● live")
        self.wait_for(lambda: re.search(r"slots held by \d+ trials at (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d, from", self.text()), "the end of the picture")

    def test_by_keyboard_alone(self):
        self.serve()
        self.open("/", "● live")
        self.wait_painted()
        self.focus_by_tab(OVERLAY)
        self.press(Keys.ARROW_RIGHT)
        self.wait_for(lambda: self.said().startswith("trial "), "a bar that is told")
        first = self.said()
        self.press(Keys.ARROW_DOWN)
        self.wait_for(lambda: self.said() != first, "another lane")
        self.press("+")
        self.wait_for(lambda: "t=" in self.browser.current_url, "a zoom")
        self.press("0")
        self.wait_for(lambda: "t=" not in self.browser.current_url, "all of it")
        self.press(Keys.ENTER)
        self.one(".why")
        self.press("t")
        table = self.one(".plot table")
        self.assertEqual([cell.text for cell in table.find_elements(By.CSS_SELECTOR, "thead th")],
                         ["Node", "Slot", "Trial", "Study", "From", "Until", "For"])
        self.assertGreater(len(table.find_elements(By.CSS_SELECTOR, "tbody tr")), 20)
        self.press("?")
        self.wait_text("go to Cluster")
        self.press(Keys.ESCAPE)
        self.wait_for(lambda: not self.all("dialog"), "no dialog")
        self.press("g", "c")
        self.wait_for(lambda: self.browser.current_url.endswith("/ui/cluster"), "the page of the cluster")
        self.assertEqual(self.browser.title, "Cluster · Espalier")
        self.assertTrue(self.browser.execute_script("return document.activeElement.tagName === 'MAIN'"))
        self.browser.back()
        self.wait_text("Studies")

    def test_single_keys_can_be_turned_off(self):
        self.serve()
        self.open("/", "● live")
        self.press("?")
        self.one("dialog input").click()
        self.press(Keys.ESCAPE)
        self.press("?")
        self.button("Keys and help").click()
        self.assertEqual(len(self.all("dialog")), 1)

    def test_search_finds_studies_trials_and_nodes(self):
        self.serve()
        self.open("/", "● live")
        self.press("/")
        self.one("dialog input")
        self.press(*"char 7")
        self.wait_for(lambda: [one.text for one in self.all("[role=option]")] == ["trial char_lm 7"], "one trial")
        self.press(Keys.ENTER)
        self.wait_for(lambda: self.browser.current_url.endswith("/ui/studies/2/trials/7"), "its page")
        self.press("/")
        self.one("dialog input")
        self.press(*"n3", Keys.ENTER)
        self.wait_for(lambda: self.browser.current_url.endswith("/ui/cluster?node=n3"), "the node")
        self.assertEqual(self.one("tr.chosen th").text, "n3 spot")

    def test_theme_can_be_chosen_and_is_kept(self):
        self.serve()
        self.size(1400)
        self.open("/", "● live")
        theme = "return document.documentElement.dataset.theme"
        self.assertEqual(self.browser.execute_script(theme), "light")
        self.button("Dark colours").click()
        self.assertEqual(self.browser.execute_script(theme), "dark")
        self.browser.refresh()
        self.wait_text("● live")
        self.assertEqual(self.browser.execute_script(theme), "dark")


class Live(PageTest):
    def test_polls_while_there_is_no_stream(self):
        fixture = self.serve()
        fixture.broken["/api/view/events"] = 503
        self.open("/", "live, each 2 s")
        self.wait_for(lambda: fixture.not_modified > 1, "polls that are told that nothing has changed")
        fixture.world.drained["n1"] = fixture.world.now() + 600
        fixture.world.revision += 1
        self.browser.get(fixture.base + "/ui/cluster")
        self.wait_text("draining")
        fixture.world.drained.clear()
        fixture.world.revision += 1
        self.wait_no_text("draining")
        del fixture.broken["/api/view/events"]
        self.wait_text("● live")
        self.wait_no_text("each 2 s")

    def test_who_may_no_longer_look_is_told(self):
        fixture = self.serve()
        self.open("/", "● live")
        fixture.broken.update({"/api/view/events": 403, "/api/view/overview": 403})
        fixture.end_streams()
        self.wait_text("no longer allowed to look")
        fixture.broken.clear()
        self.wait_text("● live")

    def test_whose_session_has_ended_is_led_to_the_login(self):
        fixture = self.serve()
        self.open("/ui/cluster?node=n2", "● live")
        self.browser.switch_to.new_window("window")
        self.open("/", "● live")
        fixture.broken.update({"/api/view/events": 401, "/api/view/overview": 401})
        fixture.end_streams()
        for window, place in zip(self.browser.window_handles, ("%2Fui%2Fcluster%3Fnode%3Dn2", "%2F")):
            self.browser.switch_to.window(window)
            self.wait_for(lambda: self.browser.current_url == f"{fixture.base}/login?to={place}", f"the login for {place}")

    def test_comes_back_after_the_service_has(self):
        fixture = self.serve()
        self.open("/ui/cluster", "● live")
        fixture.down = True
        fixture.end_streams()
        self.wait_for(lambda: fixture.reads["/api/view/overview"] > 2, "tries")
        fixture.world.drained["n1"] = fixture.world.now() + 600
        fixture.world.incarnation = "00ff"
        fixture.down = False
        self.wait_text("draining")
        self.wait_text("● live")

    def test_windows_share_a_stream(self):
        fixture = self.serve()
        self.open("/ui/cluster", "● live")
        first = self.browser.current_window_handle
        self.wait_for(lambda: len(fixture.streams) == 1, "a stream")
        self.browser.switch_to.new_window("window")
        self.open("/ui/cluster", "● live")
        second = self.browser.current_window_handle
        fixture.world.drained["n1"] = fixture.world.now() + 600
        fixture.changed()
        self.wait_text("draining")
        self.assertEqual(len(fixture.streams), 1)
        # The one that has it goes: the other takes it over.
        self.browser.switch_to.window(first)
        self.browser.close()
        self.browser.switch_to.window(second)
        self.wait_for(lambda: len(fixture.streams) == 1 and fixture.reads["/api/view/events"] == 2, "the other's stream")
        fixture.world.drained.clear()
        fixture.changed()
        self.wait_no_text("draining")

    def test_an_action_from_the_tenth_window_works(self):
        fixture = self.serve()
        for window in range(10):
            if window:
                self.browser.switch_to.new_window("window")
            self.open("/ui/cluster", "● live", "H200")
        self.assertEqual(len(fixture.streams), 1)
        self.all(".actions button")[0].click()
        self.button("Drain").click()
        self.wait_text("draining")
        self.browser.switch_to.window(self.browser.window_handles[0])
        self.wait_text("draining")

    def test_silence_is_told_with_its_beginning(self):
        fixture = self.serve()
        self.open("/", "● live")
        fixture.down = True
        fixture.end_streams()
        self.browser.execute_script("const real = Date.now; Date.now = () => real() + 60_000;")
        self.wait_for(lambda: re.search(r"not live since \d\d:\d\d", self.text()), "since when")
        fixture.down = False
        self.wait_text("● live")

    def test_a_hidden_tab_lets_go(self):
        fixture = self.serve()
        self.open("/ui/cluster", "● live")
        hidden = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        self.wait_for(lambda: not fixture.streams, "no stream")
        fixture.world.drained["n1"] = fixture.world.now() + 600
        self.browser.switch_to.window(hidden)
        self.wait_text("draining")
        self.wait_text("● live")


class Cluster(PageTest):
    def test_a_node_is_drained_after_a_question_and_taken_back(self):
        fixture = self.serve()
        self.open("/ui/cluster", "H200", "trial ")
        self.all(".actions button")[0].click()
        self.wait_text("Empty n3?")
        self.press(Keys.ESCAPE)
        self.wait_for(lambda: not self.all("dialog"), "no question")
        self.assertEqual(fixture.writes, [])
        self.all(".actions button")[0].click()
        self.one("dialog input").send_keys(Keys.BACKSPACE, Keys.BACKSPACE, "5")
        self.button("Drain").click()
        self.wait_text("draining")
        self.assertEqual(fixture.writes, [("/api/nodes/n3/drain", {"within_s": 300})])
        self.button("Take it back").click()
        self.wait_no_text("draining")
        self.assertEqual(fixture.writes[1], ("/api/nodes/n3/drain", {"undo": True}))

    def test_pinned_trials_are_told_where_they_are(self):
        world = World()
        pinned = world.held_now()[0][1]
        pinned["pinned"] = 2
        self.serve(world)
        self.open("/ui/cluster", "pinned at 2 slots")
        self.assertEqual({one.find_element(By.TAG_NAME, "a").text for one in self.all(".holders li") if "pinned" in one.text},
                         {f"trial {pinned['number']} of {pinned['study']['name']}"})

    def test_a_refusal_is_told(self):
        fixture = self.serve()
        fixture.broken["/api/nodes/n3/drain"] = 503
        self.open("/ui/cluster", "H200")
        self.all(".actions button")[0].click()
        self.button("Drain").click()
        self.wait_text("is broken in this test")

    def test_who_may_only_look_sees_no_buttons(self):
        world = World()
        world.role = "view"
        self.serve(world)
        self.open("/ui/cluster", "H200", "trial ")
        self.assertEqual(self.all("main button"), [])


class Everybody(PageTest):
    def look(self, name, path, *texts):
        for width in (1400, 768, 320):
            for dark in (False, True):
                with self.subTest(name, width=width, dark=dark):
                    self.size(width, dark=dark)
                    self.open(path, *texts)
                    self.picture(f"{name}_{width}_{'dark' if dark else 'light'}")
                    self.assertLessEqual(self.too_wide(), 0)
                    self.assertEqual(self.axe(), [])
        self.assert_no_errors()

    def test_pool_and_cluster(self):
        self.serve(World(trials=100))
        self.look("pool", "/", "● live", "resnet18")
        self.look("cluster", "/ui/cluster", "● live", "H200")

    def test_three_trials(self):
        self.serve(World(trials=3, studies=1, nodes=1, slots=2))
        self.look("pool_3", "/", "● live", "resnet18")

    def test_an_empty_pool(self):
        self.serve(World(trials=0, studies=0, nodes=0))
        self.look("pool_empty", "/", "● live", "No machine has joined", "No study yet")
        self.look("cluster_empty", "/ui/cluster", "● live", "No machine has joined")

    def test_names_that_are_too_long(self):
        names = {"study0": "an_extraordinarily_long_name_of_a_study_" * 3, "node0": "machine-with-a-very-long-name.rack-17.cluster.example.org"}
        self.serve(World(trials=20, names=names))
        self.look("pool_long", "/", "● live", "an_extraordinarily")
        self.look("cluster_long", "/ui/cluster", "● live", "machine-with")

    def test_a_page_that_is_not_there(self):
        self.serve()
        self.open("/ui/nowhere", "There is no such page")
        self.assertEqual(self.axe(), [])

    def test_dialogs(self):
        self.serve()
        self.open("/", "● live")
        self.press("?")
        self.one("dialog")
        self.assertEqual(self.axe(), [])
        self.press(Keys.ESCAPE)
        self.wait_for(lambda: not self.all("dialog"), "no dialog")
        self.press("/")
        self.one("dialog input")
        self.press("r")
        self.assertEqual(self.axe(), [])

    def test_axe_finds_what_is_planted(self):
        self.serve()
        self.open("/", "● live")
        self.browser.execute_script("""const button = document.createElement("button");
            document.querySelector("main").append(button);
            const text = document.createElement("p");
            text.textContent = "hardly to be read";
            text.style.color = "#cccccc";
            text.style.background = "#ffffff";
            document.querySelector("main").append(text);""")
        found = " ".join(self.axe())
        self.assertIn("button-name", found)
        self.assertIn("color-contrast", found)


class Strangers(PageTest):
    def test_hostile_names_are_text(self):
        names = {f"study{at}": name for at, name in enumerate(HOSTILE)} | {f"node{at}": name for at, name in enumerate(HOSTILE)}
        world = World(trials=24, studies=len(HOSTILE), nodes=len(HOSTILE), slots=2, names=names)
        world.alerts = [{"at": world.now(), "level": "error", "text": text, "study_id": 1, "study": text, "trial_id": 1, "trial": 0}
                        for text in HOSTILE]
        for decision in world.decisions:
            decision["reason"] = HOSTILE[decision["trial_id"] % len(HOSTILE)]
        self.serve(world)
        for path in ("/", "/ui/cluster", "/?why=1@9999999999&w=all"):
            self.open(path, "● live", "<script>alert(1)</script>", "right\\u202Eto left", "line\\u2028end")
            self.assertEqual(self.browser.execute_script("return document.querySelectorAll('main script, main img').length"), 0)
            self.assertLessEqual(self.too_wide(), 0)
        self.assert_no_errors()

    def test_the_browser_itself_refuses_markup_from_text(self):
        self.serve()
        self.open("/", "● live")
        refused = self.browser.execute_script("""try { document.querySelector("main").innerHTML = "<b>x</b>"; return "";
            } catch (error) { return String(error); }""")
        self.assertIn("TrustedHTML", refused)


if __name__ == "__main__":
    unittest.main()
