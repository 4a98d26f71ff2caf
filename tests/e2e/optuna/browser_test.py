"""optuna-dashboard's real front end in a headless Chromium, on our REST.

ESPALIER_SCREENSHOTS=FOLDER keeps a picture of each page."""
import environment

environment.run_inside(__file__)

import math
import os
import pathlib
import unittest

import optuna
import optuna_dashboard
from optuna.storages import GrpcStorageProxy
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

import chromium
from harness import PATIENCE_S, TunerTest

optuna.logging.set_verbosity(optuna.logging.ERROR)

# Keeps what comes onto the page: its messages go again after five seconds.
KEEP_MESSAGES = """
window.appeared = "";
new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes) window.appeared += node.textContent + "\\n";
}).observe(document.body, {childList: true, subtree: true});
"""
PLOTS = """
return [...document.querySelectorAll(".js-plotly-plot")].filter(p => p.querySelector("path, canvas, .trace")).length;
"""
# A timer that the page has set before is over first.
TYPED = "setTimeout(arguments[0], 1000);"


def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 6)
    rule = trial.suggest_categorical("rule", ["linear", "sqrt", "adascale"])
    for step in range(8):
        trial.report((x - 1) ** 2 + layers / (step + 1), step)
    if trial.number % 6 == 5:
        raise optuna.TrialPruned()
    return (x - 1) ** 2 + layers / 8 + abs(math.log10(lr) + 3) + (rule == "sqrt")


class Browser(TunerTest):
    def setUp(self):
        super().setUp()
        (self.dir / "artifacts").mkdir()
        service = self.serve(self.dir / "optuna.db",
                             options=["--dashboard", "127.0.0.1:0", "--artifacts", self.dir / "artifacts",
                                      "--dashboard-dir", os.path.dirname(optuna_dashboard.__file__)])
        self.base = f"http://{self.told_address(service, 'dashboard')}"
        host, port = self.grpc.rsplit(":", 1)
        self.storage = GrpcStorageProxy(host=host, port=int(port))
        # Software WebGL: parallel coordinates are drawn with it.
        self.browser = chromium.start(PATIENCE_S, "1400,1800", ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"))
        self.addCleanup(self.browser.quit)

    def tearDown(self):
        errors = [entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]
        super().tearDown()
        self.assertEqual(errors, [])

    def wait_for(self, condition, what):
        return WebDriverWait(self.browser, PATIENCE_S).until(lambda _: condition(), f"waited for {what}")

    def wait_text(self, text):
        self.wait_for(lambda: text in self.browser.find_element(By.TAG_NAME, "body").text, repr(text))

    def open(self, path, *texts):
        self.browser.get(self.base + path)
        for text in texts:
            self.wait_text(text)

    def click_for(self, button, message):
        """Waits for what the page says for a while after the click."""
        self.browser.execute_script(KEEP_MESSAGES)
        button.click()
        self.wait_for(lambda: message in self.browser.execute_script("return window.appeared;"), repr(message))

    def plots(self, at_least):
        """Waits for so many plots with something drawn in them."""
        self.wait_for(lambda: self.browser.execute_script(PLOTS) >= at_least, f"{at_least} plots")

    def picture(self, name):
        folder = os.environ.get("ESPALIER_SCREENSHOTS")
        if folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))

    def study(self, name, trials=36, **keys):
        study = optuna.create_study(study_name=name, storage=self.storage,
                                    sampler=optuna.samplers.RandomSampler(seed=3), **keys)
        study.optimize(objective, n_trials=trials)
        return study

    def test_pages_of_a_study(self):
        study = self.study("shown in a browser")
        study.set_user_attr("team", "vision")
        self.open("/dashboard", "shown in a browser")
        self.picture("studies")
        at = f"/dashboard/studies/{study._study_id}"
        self.open(at, "shown in a browser", "History", "Hyperparameter Importance", "Best Trial", "Intermediate values")
        self.plots(3)  # history, importance, timeline
        self.picture("study")
        self.open(f"{at}/analytics", "Hyperparameter Relationships", "Slice", "Contour", "Empirical Distribution")
        self.plots(4)
        self.picture("analytics")
        self.open(f"{at}/trials", "Trial 3", "layers")
        self.picture("trials")
        # Parallel coordinates and the table of trials.
        self.open(f"{at}/smartSelection", "Number", "Param layers", "Rows per page")
        self.plots(1)
        self.picture("selection")

    def test_a_note_is_edited_and_kept(self):
        study = self.study("with a note", trials=4)
        at = f"/dashboard/studies/{study._study_id}/note"
        self.open(at)
        # The one button of the page, beside those of its frame.
        self.wait_for(lambda: self.browser.find_elements(By.CSS_SELECTOR, ".MuiCard-root button"), "the editor")[0].click()
        text = self.wait_for(lambda: [e for e in self.browser.find_elements(By.TAG_NAME, "textarea") if e.is_displayed()],
                             "a text area")[0]
        text.send_keys("# Findings", Keys.ENTER, "the *first* one")
        save = [b for b in self.browser.find_elements(By.TAG_NAME, "button") if "save" in b.text.lower()]
        self.click_for(save[0], "Success to save the note")
        self.assertEqual(optuna_dashboard.get_note(study), "# Findings\nthe *first* one")
        self.open(at, "Findings")
        self.picture("note")

    def test_trials_appear_while_one_looks(self):
        study = self.study("live", trials=3)
        self.open(f"/dashboard/studies/{study._study_id}/trials", "Trial 2")
        study.optimize(objective, n_trials=4)
        self.wait_text("Trial 6")
        self.picture("live")

    def test_pareto_front_and_hypervolume(self):
        study = optuna.create_study(study_name="two", storage=self.storage, directions=["minimize", "maximize"],
                                    sampler=optuna.samplers.RandomSampler(seed=5))
        study.optimize(lambda t: (t.suggest_float("x", 0, 5) ** 2, t.params["x"] + t.suggest_float("y", 0, 1)), n_trials=40)
        self.open(f"/dashboard/studies/{study._study_id}", "two", "Pareto Front")
        self.plots(3)
        self.picture("pareto")

    def test_make_rename_and_delete_a_study(self):
        self.study("old name", trials=2)
        self.open("/dashboard", "old name")
        self.browser.find_element(By.CSS_SELECTOR, "[aria-label='rename study']").click()
        field = self.wait_for(lambda: [e for e in self.browser.find_elements(By.CSS_SELECTOR, "[role=dialog] input")
                                       if e.is_displayed()], "the dialog")[0]
        # The field tells the page half a second after the last key.
        field.send_keys("old name")
        self.wait_text("is already used")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys("new name")
        self.browser.execute_async_script(TYPED)
        self.wait_for(lambda: "is already used" not in self.browser.find_element(By.TAG_NAME, "body").text, "the name")
        [b for b in self.browser.find_elements(By.CSS_SELECTOR, "[role=dialog] button") if "rename" in b.text.lower()][0].click()
        self.wait_text("new name")
        names = [s.study_name for s in optuna.get_all_study_summaries(self.storage)]
        self.assertEqual(names, ["new name"])
        self.open("/dashboard", "new name")
        self.assertNotIn("old name", self.browser.find_element(By.TAG_NAME, "body").text)
        self.browser.find_element(By.CSS_SELECTOR, "[aria-label='delete study']").click()
        yes = self.wait_for(lambda: [b for b in self.browser.find_elements(By.CSS_SELECTOR, "[role=dialog] button")
                                     if b.is_displayed() and "yes" in b.text.lower()], "the question")[0]
        self.click_for(yes, "Success to delete a study")
        self.assertEqual(optuna.get_all_study_summaries(self.storage), [])


if __name__ == "__main__":
    unittest.main(warnings="ignore")
