"""What a search has to keep to and where its trials come from, in a headless Chromium, before a made-up pool."""
import environment

environment.run_inside(__file__)

import unittest

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from fixture_world import Constrained, Population, SeveralMetrics, World
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

    def test_the_pool_tells_how_many_keep_to_them(self):
        world = Constrained(trials=60)
        told = [world.infeasible(trial) for trial in world.studies[0]["trials"]]
        self.serve(world)
        self.open("/", "● live", f"{told.count(False)} of {told.count(False) + told.count(True)} keep to their constraints")
        self.assertEqual(self.text().count("constraints"), 1, "the others have none")
        self.look("constraints-pool")

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


class Front(SearchTest):
    def test_the_front_is_on_the_first_page_with_those_that_break_a_constraint(self):
        world = SeveralMetrics(trials=60)
        self.open_study("", world, "Best trials of 2 objectives")
        complete = [trial for trial in world.studies[0]["trials"] if trial["state"] == "complete"]
        broken = [trial["number"] for trial in complete if world.infeasible(trial)]
        best = [trial["number"] for trial in world.front()]
        self.wait_text(f"{len(broken)} with a cross break a constraint")
        self.wait_painted("section[aria-label='Best trials'] canvas")
        self.look("front-first")
        self.size(1400)
        listed = [int(row.text.split()[0]) for row in self.all("[aria-label='The best trials, as a list'] tbody tr")]
        self.assertEqual(sorted(listed), best)
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label='Best trials'] .plot-overlay"))
        self.press(Keys.END)
        last = max(complete, key=world.value)["number"]
        what = "breaks a constraint" if last in broken else "among the best"
        self.wait_for(lambda: self.said().startswith(f"trial {last}, {what}"), "the greatest of the first metric")
        self.press("t")
        rows = self.wait_for(lambda: self.all("section[aria-label='Best trials'] [role=figure] tbody tr"), "the picture as a table")
        self.assertEqual(sum("breaks a constraint" in row.text for row in rows), len(broken))

    def test_curves_of_each_metric(self):
        world = SeveralMetrics(trials=20)
        self.open_study("", world, "metric")
        asked = self.asked()
        Select(self.one("section[aria-label=Curves] select")).select_by_visible_text("latency_ms")
        self.one("[role=figure][aria-label='latency_ms of the trials']")
        self.assertEqual(self.query()["metric"], "1")
        self.wait_for(lambda: [query for path, query in asked if path.endswith("/curves") and query.get("objective") == ["1"]], "its curves")
        trial = next(one for one in world.studies[0]["trials"] if one["state"] == "complete")
        self.open(f"/ui/studies/1/trials/{trial['number']}?metric=1", "accuracy, maximized", "latency_ms, minimized")
        self.one("[role=figure][aria-label^='latency_ms of trial']")
        self.open(f"/ui/compare?t={trial['id']},{trial['id'] + 1}&metric=1", "Compare 2 trials")
        self.one("[role=figure][aria-label='latency_ms of the compared trials']")
        heads = [one.text for one in self.all("section[aria-label='Compared trials'] tbody th")]
        self.assertEqual([name for name in heads if name in world.names], world.names)


class Like(SearchTest):
    def test_the_study_that_is_learnt_from_is_named(self):
        class Learns(World):
            other = "char_lm"

            def study(self, id):
                return {**super().study(id), "like": {"study": self.other, "trials": 20, "ended": 23, "within": 21} if id == 1 else None}

        world = Learns()
        self.open_study("", world, "Its sampler learns from 20 of the 23 ended trials of char_lm; 2 lie outside the search space.")
        self.look("like")
        self.size(1400)
        self.one(".like a").click()
        self.wait_for(lambda: self.path() == "/ui/studies/2", "the other study")
        world.other = "gone " * 40 + "\u202e"
        self.open("/ui/studies/1", "● live", "ended trials of gone")
        self.assertEqual(self.all(".like a"), [])


class Clones(SearchTest):
    def running(self, world):
        return next(trial for trial in world.studies[0]["trials"] if trial["state"] == "running")

    def open_clone_form(self, trial):
        self.open(f"/ui/studies/1/trials/{trial['number']}")
        self.button("Clone…")
        self.press("c")
        self.wait_text("Clone trial")

    def test_a_trial_is_cloned_with_the_mouse(self):
        world = World()
        parent = self.running(world)
        fixture = self.serve(world)
        self.open(f"/ui/studies/1/trials/{parent['number']}", "● live")
        self.button("Clone…").click()
        self.wait_text(f"Clone trial {parent['number']}")
        fields = self.all("dialog .enqueue-field input")
        self.assertEqual(float(fields[0].get_attribute("value")), parent["parameters"]["lr"])
        self.look("clone-form")
        self.size(1400)
        self.button("Clone").click()
        self.wait_text("A clone has at least one parameter of its own: change one.")
        fields[1].send_keys(Keys.CONTROL, "a", Keys.NULL, "9", Keys.ENTER)
        self.wait_text("layers: want a whole number from 1 to 8")
        self.assertEqual(fixture.writes, [])
        fields[1].send_keys(Keys.CONTROL, "a", Keys.NULL, str(parent["parameters"]["layers"]))
        other = next(rule for rule in ("linear", "sqrt") if rule != parent["parameters"]["rule"])
        Select(self.one("dialog select")).select_by_visible_text(other)
        self.button("Clone").click()
        self.wait_text(f"Clone of trial {parent['number']} that waits for its checkpoint, with rule = {other}")
        self.assertEqual(fixture.writes, [(f"/api/trials/{parent['id']}/clone", {"parameters": {"rule": other}})])
        self.assertEqual(self.path(), f"/ui/studies/1/trials/{world.studies[0]['trials'][-1]['number']}")
        self.assert_no_errors()

    def test_by_the_keyboard_and_what_is_refused_is_told(self):
        world = World()
        parent = self.running(world)
        self.serve(world)
        self.open_clone_form(parent)
        self.listen()
        self.press(Keys.END, "1", Keys.ENTER)
        self.wait_for(lambda: self.fixture.writes, "a clone")
        self.assertEqual(self.fixture.writes[0][1]["parameters"], {"lr": float(f"{parent['parameters']['lr']!r}1")})
        self.wait_for(lambda: any(text.endswith(f"is a clone of trial {parent['number']}") for text in self.heard()), "it said")
        waiting = next(trial for trial in world.studies[0]["trials"] if trial["state"] == "waiting")
        self.open_clone_form(waiting)
        self.press(Keys.END, Keys.BACK_SPACE, Keys.ENTER)
        self.wait_text("has saved no checkpoint yet, with which a clone could begin")
        self.press(Keys.ESCAPE)
        self.wait_no_text("Clone trial")

    def test_one_that_has_ended_without_its_checkpoint_waits_for_nothing(self):
        world = World()
        parent, clone = self.running(world), world.add_trial(1, "pruned", lr=0.02)
        clone["parent"] = (parent, None)
        self.serve(world)
        self.open(f"/ui/studies/1/trials/{clone['number']}", f"Clone of trial {parent['number']} that ended without its checkpoint")
        self.open(f"/ui/studies/1/trials/{parent['number']}", f"Its clone: trial {clone['number']} (which ended without its checkpoint)")

    def test_from_a_row_of_the_table(self):
        world = World()
        parent = self.running(world)
        self.open_study("", world)
        self.row(parent["number"]).find_element(By.CSS_SELECTOR, ".row-menu").click()
        self.button("Clone…").click()
        self.wait_text(f"Clone trial {parent['number']}")
        self.press(Keys.END, "1", Keys.ENTER)
        self.wait_text(f"Clone of trial {parent['number']}")

    def test_a_refusal_after_the_form_is_closed_is_shown_on_any_page(self):
        world = World()
        waiting = next(trial for trial in world.studies[0]["trials"] if trial["state"] == "waiting")
        fixture = self.serve(world)
        self.open_clone_form(waiting)
        fixture.answers.clear()
        self.press(Keys.END, Keys.BACK_SPACE, Keys.ENTER)
        self.wait_for(lambda: fixture.writes, "the question")
        self.press(Keys.ESCAPE)
        self.wait_no_text("Clone trial")
        self.press("g", "p")
        self.wait_text("slots held")
        fixture.answers.set()
        self.wait_text(f"Trial {waiting['number']} was not cloned: trial {waiting['number']} of study")
        self.assertEqual(self.axe(), [])
        self.button("Close").click()
        self.wait_no_text("was not cloned")

    def test_who_may_only_look_sees_no_form(self):
        world = World()
        world.role = "view"
        self.serve(world)
        self.open(f"/ui/studies/1/trials/{self.running(world)['number']}", "● live", "Copy parameters")
        self.assertNotIn("Clone", self.text())

    def test_where_a_clone_comes_from_and_where_its_clones_are(self):
        world = Population(trials=40)
        trials = world.studies[0]["trials"]
        clone = next(trial for trial in trials if "parent" in trial and "parent" in trial["parent"][0])
        parent = clone["parent"][0]
        self.serve(world)
        self.open(f"/ui/studies/1/trials/{clone['number']}", f"Clone of trial {parent['number']} at step {clone['parent'][1]}, with lr = ",
                  "Its line began with trial ")
        self.look("clone")
        self.size(1400)
        self.browser.find_element(By.LINK_TEXT, f"trial {parent['number']}").click()
        self.wait_text(f"trial {clone['number']} from step {clone['parent'][1]}")
        self.assertEqual(self.path(), f"/ui/studies/1/trials/{parent['number']}")

    def test_lines_of_descent_are_a_picture_and_a_list(self):
        world = Population(trials=40)
        self.open_study("", world, "clones in")
        clones = [trial for trial in world.studies[0]["trials"] if "parent" in trial]
        self.wait_text(f"{len(clones)} clones in ")
        self.wait_painted("section[aria-label=Lineage] canvas")
        self.look("lineage")
        self.size(1400)
        rows = self.all("section[aria-label=Lineage] tbody tr")
        self.browser.execute_script("arguments[0].focus()", self.one("section[aria-label=Lineage] .plot-overlay"))
        self.press(Keys.HOME)
        founder = rows[0].text.split()[0]
        self.wait_for(lambda: self.said().startswith(f"trial {founder}, ") and "began afresh" in self.said(), "the first of the line")
        self.press(Keys.ARROW_RIGHT)
        self.wait_for(lambda: f"clone of trial {founder} at step 6, with lr " in self.said(), "its first clone")
        clone = self.said().split(",")[0].split()[1]
        self.press(Keys.ARROW_LEFT)
        self.wait_for(lambda: self.said().startswith(f"trial {founder}, "), "back to its parent")
        self.press(Keys.ARROW_RIGHT, Keys.ENTER)
        self.wait_for(lambda: self.path() == f"/ui/studies/1/trials/{clone}", "its page")

    def test_a_study_without_clones_has_no_lineage(self):
        self.open_study("")
        self.assertEqual(self.all("section[aria-label=Lineage]"), [])


if __name__ == "__main__":
    unittest.main()
