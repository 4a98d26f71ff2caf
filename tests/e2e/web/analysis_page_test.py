"""What decided in a study, and what another policy would have made of it: the tabs in a headless Chromium, before a made-up
pool."""
import environment

environment.run_inside(__file__)

import re
import unittest
import urllib.parse

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from fixture_world import SeveralObjectives, World
from page_case import PageTest

TABLE = "table.virtual"


class StudyTest(PageTest):
    def query(self):
        address = urllib.parse.urlsplit(self.browser.current_url)
        return {key: values[0] for key, values in urllib.parse.parse_qs(address.query).items()}

    def count(self):
        return int(self.one(TABLE).get_attribute("aria-rowcount")) - 1

    def look(self, name):
        """No barriers that can be found, wide and narrow, light and dark."""
        for width, dark in ((1400, False), (320, True)):
            self.size(width, dark=dark)
            self.wait_painted()
            self.assertEqual(self.axe(), [])
            self.assertLessEqual(self.too_wide(), 0)
            self.picture(f"{name}-{width}{'-dark' if dark else ''}")
        self.assert_no_errors()


class Analysis(StudyTest):
    def open_analysis(self, query=""):
        self.serve(World(trials=60))
        self.open("/ui/studies/1?tab=analysis" + query, "● live", "61 %")
        self.one(".parallel-axis")
        self.wait_text(" of 59 trials")

    def axis(self, name):
        return self.one(f".parallel-axis[aria-label^='{name}:']")

    def test_which_parameters_matter_by_one_key_and_as_a_table(self):
        self.serve(World(trials=60))
        self.open("/ui/studies/1", "● live")
        self.one(TABLE)
        self.press("a")
        self.wait_text("What decided")
        self.assertEqual(self.query()["tab"], "analysis")
        self.assertIn("lr 61 %, layers 30 %, rule 9.0 %", self.one(".importance").get_attribute("aria-label"))
        self.one("section[aria-label=Importance] button").click()
        self.assertIn("61 %", self.one("[aria-label='Importance of the parameters, as a table']").text)
        self.assert_no_errors()

    def test_a_part_of_an_axis_is_a_filter_of_the_table(self):
        self.open_analysis()
        ActionChains(self.browser).move_to_element_with_offset(self.axis("layers"), 0, -120).click_and_hold().move_by_offset(0, 90) \
            .release().perform()
        self.wait_for(lambda: self.query().get("f", "").startswith("p:layers "), "the filter in the address")
        kept = re.search(r"(\d+) of 59 trials", self.text())[1]
        self.assertLess(int(kept), 59)
        self.browser.find_element(By.XPATH, "//nav[@aria-label='Parts of the study']//button[.='Overview']").click()
        self.one(TABLE)
        self.assertIn("p:layers", self.one(".chips").text)
        self.assertLessEqual(int(kept), self.count())
        self.assertLess(self.count(), 60)

    def test_axes_by_the_keyboard(self):
        self.open_analysis()
        self.axis("rule").send_keys(Keys.ENTER)
        self.wait_for(lambda: self.query().get("f") == "p:rule: sqrt, adascale", "the filter in the address")
        self.axis("rule").send_keys("-", Keys.ARROW_UP)
        self.axis("rule").send_keys(Keys.ESCAPE)
        self.wait_for(lambda: "f" not in self.query(), "the filter to be off")
        self.axis("lr").send_keys(Keys.ARROW_DOWN)
        self.wait_for(lambda: self.query().get("f") == "p:lr ..0.001", "the lower half")

    def test_other_parameters_are_chosen(self):
        self.open_analysis()
        Select(self.browser.find_element(By.XPATH, "//label[contains(., 'across')]/select")).select_by_visible_text("rule")
        self.one("[role=figure][aria-label='accuracy by rule']")
        self.one("[role=figure][aria-label='accuracy by rule and lr']")
        self.assertEqual(self.query()["ax"], "p:rule")

    def test_no_barriers_that_can_be_found(self):
        self.open_analysis("&f=p%3Alayers+2..6")
        self.look("analysis")


class Values(StudyTest):
    def table_of(self, label):
        """Rows of the picture's table, opened by its key."""
        picture = self.one(f"[role=figure][aria-label='{label}']")
        self.browser.execute_script("arguments[0].focus()", picture.find_element(By.CSS_SELECTOR, ".plot-overlay"))
        self.press("t")
        self.one(f"[role=figure][aria-label='{label}'] table")
        return [row.text.split() for row in self.all(f"[role=figure][aria-label='{label}'] tbody tr")]

    def test_the_best_of_two_objectives(self):
        world = SeveralObjectives(trials=60)
        self.serve(world)
        self.open("/ui/studies/1?tab=analysis", "● live", "Best trials of 2 objectives", "value 1 is maximized, value 2 is minimized")
        best = [trial["number"] for trial in world.front()]
        self.wait_text(f"than the {len(best)} that the line joins")
        self.wait_painted("section[aria-label='Best trials'] canvas")
        self.look("front")
        self.size(1400)
        rows = self.table_of("value 2 by value 1")
        self.assertEqual(len(rows), sum(trial["state"] == "complete" for trial in world.studies[0]["trials"]))
        self.assertEqual(sorted(int(row[0]) for row in rows if row[-1] == "yes"), best)
        # A filter of the table is one of the picture.
        self.browser.get(self.browser.current_url + f"&f=number+..{best[0]}")
        self.wait_text("than the one with a large dot")

    def test_a_point_of_the_front_is_told_and_opened(self):
        world = SeveralObjectives(trials=60)
        self.serve(world)
        self.open("/ui/studies/1?tab=analysis", "● live", "that the line joins")
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label='Best trials'] .plot-overlay"))
        self.press(Keys.END)
        # The greatest first value is on the front, whatever its second one.
        best = world.front()[-1]["number"]
        self.wait_for(lambda: self.said().startswith(f"trial {best}, among the best"), "the best of the first objective")
        self.press(Keys.ENTER)
        self.wait_for(lambda: self.browser.current_url.endswith(f"/ui/studies/1/trials/{best}"), "its page")

    def test_how_values_are_spread(self):
        world = World(trials=60)
        self.serve(world)
        self.open("/ui/studies/1?tab=analysis", "● live", "Spread of the values")
        values = sorted((world.value(trial) for trial in world.studies[0]["trials"] if trial["state"] == "complete"), reverse=True)
        self.wait_text(f"{len(values)} complete trials; half have")
        self.wait_painted("section[aria-label='Spread of the values'] canvas")
        rows = self.table_of("Share of trials by accuracy")
        self.assertEqual([float(row[0]) for row in rows], [float(f"{value:.5g}") for value in values], "the best first")
        self.assertEqual(rows[-1][1:], ["100", "%"])
        self.assert_no_errors()

    def test_what_a_source_does_not_tell_is_left_out(self):
        self.serve(SeveralObjectives(trials=60))
        self.fixture.broken["/api/view/studies/1/analysis"] = 404
        self.open("/ui/studies/1?tab=analysis", "● live", "Parameters and value", "Importance could not be read")
        self.wait_for(lambda: not self.all("section[aria-label='Spread of the values'], section[aria-label='Best trials']"), "neither picture")

    def test_of_one_value_there_is_no_spread(self):
        self.serve(World(trials=3, studies=1, seed=3))
        self.open("/ui/studies/1?tab=analysis", "● live")
        self.wait_text("It takes two complete trials")
        self.wait_for(lambda: not self.all("section[aria-label='Spread of the values'], section[aria-label='Best trials']"), "neither picture")


class WhatIf(StudyTest):
    def test_two_policies_beside_one_another(self):
        self.serve(World(trials=60))
        self.open("/ui/studies/1?tab=whatif", "What if another policy")
        self.one(".what-if button").click()
        self.wait_text("Side by side, on 32 slots")
        self.assertEqual(self.fixture.writes, [("/api/studies/resnet18/simulations", {"policy": "fixed"})])
        row = self.browser.find_element(By.XPATH, "//tr[th='finished after']").text
        self.assertEqual(row.split()[-2:], ["1:00:00", "1:30:00"])
        self.assertIn("3 trials went on past what was recorded", self.text())
        self.one("[role=figure][aria-label='Slots as it was, under promise_goodput']")
        self.one("[role=figure][aria-label='Slots under fixed']")
        self.assertEqual(self.query()["sim"], "1")
        self.browser.refresh()
        self.wait_text("Side by side, on 32 slots")
        self.assert_no_errors()
        self.look("what-if")

    def test_what_is_refused_says_why(self):
        self.serve(World())
        self.open("/ui/studies/1?tab=whatif", "What if another policy")
        field = self.one(".what-if input")
        # By keys, as people do: of a field that a driver has cleared, React may keep the text.
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, "best", Keys.ENTER)
        self.wait_text('unknown policy "best"')
        self.assertNotIn("sim", self.query())

    def test_who_may_only_look_cannot_run_it(self):
        world = World()
        world.role = "view"
        self.serve(world)
        self.open("/ui/studies/1?tab=whatif", "Who may submit studies can run it")
        self.assertEqual(self.all(".what-if"), [])


if __name__ == "__main__":
    unittest.main()
