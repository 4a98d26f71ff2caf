"""What a search has to keep to and where its trials come from, in a headless Chromium, before a made-up pool."""
import environment

environment.run_inside(__file__)

import unittest

from fixture_world import Constrained
from study_case import StudyTest


class SearchTest(StudyTest):
    def look(self, name):
        """No barriers that can be found, wide and narrow, light and dark."""
        for width, dark in ((1400, False), (320, True)):
            self.size(width, dark=dark)
            self.assertEqual(self.axe(), [])
            self.assertLessEqual(self.too_wide(), 0)
            self.picture(f"{name}-{width}{'-dark' if dark else ''}")
        self.assert_no_errors()


class Constraints(SearchTest):
    def test_who_keeps_to_them_is_counted_and_who_does_not_is_shown(self):
        world = Constrained(trials=60)
        self.open_study("", world, "trials keep to latency_ms <= 20")
        told = [world.infeasible(trial) for trial in world.studies[0]["trials"]]
        self.wait_text(f"{told.count(False)} of {told.count(False) + told.count(True)}")
        self.wait_painted()
        self.look("constraints")
        self.size(1400)
        self.button("show the others").click()
        self.wait_for(lambda: self.count() == told.count(True), "those alone that break it")
        self.assertEqual(self.query()["f"], "infeasible: yes")
        self.assertTrue(all(number % 3 == 2 for number in self.numbers()))
        self.assertTrue(all("⊘ yes" in row for row in self.rows()))

    def test_a_trial_says_what_it_breaks(self):
        world = Constrained(trials=60)
        broken = next(trial for trial in world.studies[0]["trials"] if world.infeasible(trial))
        self.serve(world)
        self.open(f"/ui/studies/1/trials/{broken['number']}", "breaks latency_ms <= 20", "⊘ 25")
        self.look("breaks")
        kept = next(trial for trial in world.studies[0]["trials"] if world.infeasible(trial) is False)
        self.open(f"/ui/studies/1/trials/{kept['number']}", "keeps to latency_ms <= 20")
        self.open(f"/ui/compare?t={broken['id']},{kept['id']}", "Compare 2 trials")
        row = self.one("section[aria-label='Compared trials'] tbody")
        self.wait_for(lambda: "infeasible" in row.text and "⊘ yes" in row.text and "✔ no" in row.text, "which of them breaks it")

    def test_curves_tell_who_breaks_one(self):
        world = Constrained(trials=60)
        broken = next(trial for trial in world.studies[0]["trials"] if world.infeasible(trial))
        self.open_study(f"?chosen={broken['id']}&top=chosen", world, "1 curve of")
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label='Curves'] .plot-overlay"))
        self.press("t")
        self.wait_text("breaks a constraint")


if __name__ == "__main__":
    unittest.main()
