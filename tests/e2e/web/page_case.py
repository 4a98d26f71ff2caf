"""What tests of pages share: a headless Chromium before a made-up pool, and what must hold on every page.

ESPALIER_SCREENSHOTS=FOLDER keeps a picture of each page."""
import importlib.resources
import os
import pathlib
import unittest

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

import chromium
from fixture_server import FixtureServer
from fixture_world import World

PATIENCE_S = 60
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {runOnly: {type: "tag", values: arguments[0]}}).then(
  (result) => done(result.violations.map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " +
      node.any.map((any) => any.message).join(" ")).join(" | "))),
  (error) => done(["axe: " + error]));
"""


class BrowserTest(unittest.TestCase):
    """`base` is the service's address."""

    base = None

    def setUp(self):
        super().setUp()
        self.browser = chromium.start(PATIENCE_S)
        self.addCleanup(self.browser.quit)

    def assert_no_errors(self):
        """None in the console: a refusal of the content security policy is one."""
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"], [])

    def open(self, path="/", *texts):
        self.browser.get(self.base + path)
        for text in texts:
            self.wait_text(text)

    def size(self, width, height=1000, dark=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def wait_for(self, condition, what):
        return WebDriverWait(self.browser, PATIENCE_S, poll_frequency=0.05).until(lambda _: condition(), f"waited for {what}")

    def text(self):
        return self.browser.execute_script("return document.body.innerText")

    def wait_text(self, text):
        self.wait_for(lambda: text in self.text(), repr(text))

    def wait_no_text(self, text):
        self.wait_for(lambda: text not in self.text(), f"no {text!r}")

    def one(self, selector):
        return self.wait_for(lambda: self.browser.find_elements(By.CSS_SELECTOR, selector), selector)[0]

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def button(self, text):
        """The first button that shows or is named this."""
        script = """return [...document.querySelectorAll("button")].find(
            (one) => one.innerText.trim() === arguments[0] || one.getAttribute("aria-label") === arguments[0]);"""
        return self.wait_for(lambda: self.browser.execute_script(script, text), f"button {text!r}")

    def press(self, *keys):
        """To what has the focus."""
        chain = ActionChains(self.browser)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    def focus_by_tab(self, selector, most=60):
        """Goes there by the keyboard alone."""
        for _ in range(most):
            if self.browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
            self.press(Keys.TAB)
        self.fail(f"{selector} is not reached by Tab")

    def said(self):
        """The newest text of the live region."""
        return self.browser.execute_script("return document.querySelector('[aria-live]').textContent")

    def listen(self):
        """From now on heard() has all that is said on this page, however soon something else follows it."""
        self.browser.execute_script("""const heard = window.heard = [];
            new MutationObserver((changes) => changes.forEach(({target}) => heard.push(target.textContent)))
                .observe(document.querySelector("[aria-live]"), {childList: true});""")

    def heard(self):
        return self.browser.execute_script("return window.heard")

    def axe(self):
        """What axe-core finds on the page as it is."""
        if not self.browser.execute_script("return typeof axe !== 'undefined'"):
            source = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
            self.browser.execute_script(source)
        return self.browser.execute_async_script(AXE, WCAG)

    def too_wide(self):
        """How many pixels the page is wider than its window."""
        return self.browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def picture(self, name):
        folder = os.environ.get("ESPALIER_SCREENSHOTS")
        if folder:
            pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))

    def wait_painted(self, selector=".plot canvas"):
        """Something is drawn: the marks' canvas is not of one colour."""
        script = """const canvas = document.querySelector(arguments[0]);
            if (!canvas || !canvas.width) return false;
            const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            return data.some((pixel) => pixel !== data[0]);"""
        self.wait_for(lambda: self.browser.execute_script(script, selector), f"something drawn in {selector}")


class PageTest(BrowserTest):
    """Before a made-up pool."""

    fixture = None

    def serve(self, world=None):
        """With this world, or the usual one."""
        self.fixture = FixtureServer(world or World())
        self.addCleanup(self.fixture.close)
        self.base = self.fixture.base
        return self.fixture
