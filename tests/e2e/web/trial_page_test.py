"""The pages of a trial and of several trials beside one another in a headless Chromium, before a made-up pool."""
import environment

environment.run_inside(__file__)

import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from fixture_world import World
from study_case import StudyTest


class TrialPage(StudyTest):
    def test_a_failed_trial_says_why_and_shows_its_log(self):
        fixture = self.serve()
        trial = next(one for one in fixture.world.studies[0]["trials"] if one["state"] == "failed")
        self.open(f"/ui/studies/1/trials/{trial['number']}", "Why it failed: rank 0 ended with signal 9", "epoch 199 loss", "Decisions about it",
                  "Slots", "Parameters")
        self.wait_painted()
        self.assert_no_errors()

    def test_the_log_follows_its_end_until_somebody_reads(self):
        fixture = self.serve()
        self.open("/ui/studies/1/trials/38", "epoch 199 loss")
        pane = self.one(".log pre")
        at_end = "return arguments[0].scrollTop + arguments[0].clientHeight >= arguments[0].scrollHeight - 24"
        self.wait_for(lambda: self.browser.execute_script(at_end, pane), "the end")
        fixture.printed += "\u001b[32mgreen\u001b[0m 10%\r99% \u0007 ünïcode\n".encode()
        self.wait_text("99% \\u0007 ünïcode")
        self.assertNotIn("10%", pane.text)
        self.wait_for(lambda: self.browser.execute_script(at_end, pane), "the new end")
        self.browser.execute_script("arguments[0].scrollTop = 0", pane)
        self.wait_for(lambda: not self.one(".log input[type=checkbox]").is_selected(), "reading, not following")
        euro = "€".encode()
        fixture.printed += euro[:1]
        read = fixture.reads["/api/trials/39/output"]
        self.wait_for(lambda: fixture.reads["/api/trials/39/output"] >= read + 2, "half a letter")
        fixture.printed += euro[1:] + b" the newest line\n"
        self.wait_for(lambda: "€ the newest line" in pane.get_attribute("textContent"), "what was printed meanwhile")
        self.assertEqual(self.browser.execute_script("return arguments[0].scrollTop", pane), 0)
        self.one(".log input[type=checkbox]").click()
        self.wait_for(lambda: self.browser.execute_script(at_end, pane), "the end once more")

    def test_a_trial_that_is_not_there(self):
        self.serve()
        self.open("/ui/studies/1/trials/4000", "This study has no trial 4000.")

    def test_what_came_of_a_speedup_that_was_foretold(self):
        world = World()
        grown = next(one for one in world.decisions if one["kind"] == "grow" and one["study_id"] == 1)
        trial = world.trials[grown["trial_id"] - 1]
        points = world.curve(trial)
        # Between its reports, whose goodput is 900 and one more with each step.
        grown["at"] = (points[1][1] + points[2][1]) / 2
        self.serve(world)
        self.open(f"/ui/studies/1/trials/{trial['number']}", "measured since")
        since = [900 + step for step, *_ in points[2:]]
        row = next(row for row in self.all(".decisions tbody tr") if " grow " in row.text)
        measured = f"{(since[(len(since) - 1) // 2] + since[len(since) // 2]) / 2 / 901.5:.3g}"
        self.wait_for(lambda: row.find_elements(By.TAG_NAME, "td")[4].text == measured, f"a speedup of {measured}")

    def test_slots_over_time_by_the_keyboard(self):
        self.serve()
        self.open("/ui/studies/1/trials/38", "Slots")
        self.wait_painted("section[aria-label='Slots over time'] canvas")
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label='Slots over time'] .plot-overlay"))
        self.press(Keys.HOME)
        self.wait_for(lambda: "start: a slot was free" in self.said() or "n" in self.said().split(",")[-1], "the first step in words")


class Compare(StudyTest):
    def test_what_differs_comes_first_and_what_is_alike_can_be_shown(self):
        world = World()
        for one in (9, 12, 20):
            world.trials[one - 1]["parameters"]["layers"] = 4
        self.serve(world)
        self.open("/ui/compare?t=9,12,20", "Compare 3 trials", "What differs", "lr")
        self.wait_painted()
        self.assertNotIn("layers", self.text())
        self.button("2 are alike: show").click()
        self.wait_text("layers")
        self.button("Leave out trial 11").click()
        self.wait_text("Compare 2 trials")
        self.assertEqual(self.query()["t"], "9,20")
        self.assert_no_errors()

    def test_trials_of_several_studies_have_a_picture_each(self):
        world = World()
        self.serve(world)
        other = world.studies[1]["trials"][0]["id"]
        self.open(f"/ui/compare?t=9,{other}", "Curves of resnet18", "Curves of char_lm")

    def test_nothing_to_compare(self):
        self.serve()
        self.open("/ui/compare", "Choose trials in the table of a study")
        self.open("/ui/compare?t=9,4000", "A trial could not be read")


if __name__ == "__main__":
    unittest.main()
