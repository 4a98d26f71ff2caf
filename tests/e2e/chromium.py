"""Debian's Chromium without a window, driven by Selenium, as all tests and benchmarks of pages start it."""
import os
import shutil
import tempfile

from selenium import webdriver

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage")


class Browser(webdriver.Chrome):
    """Its driver kills it, so that it leaves its files: they are in a folder that is removed with it. The folder's name is short,
    since a socket's path, which Chromium makes in it, has room for 107 characters."""

    def __init__(self, options):
        self._folder = tempfile.mkdtemp(prefix="esp-")
        service = webdriver.ChromeService("/usr/bin/chromedriver", env=os.environ | {"TMPDIR": self._folder})
        try:
            super().__init__(options=options, service=service)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def quit(self):
        try:
            super().quit()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def start(patience_s, size="1400,1000", arguments=()):
    """The browser; who starts it quits it. Its scripts may take as long as `patience_s`; its console is kept as the log "browser"."""
    options = webdriver.ChromeOptions()
    for argument in (*ARGUMENTS, f"--window-size={size}", *arguments):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Browser(options)
    browser.set_script_timeout(patience_s)
    return browser
