"""Debian's Chromium without a window, driven by Selenium, as all tests and benchmarks of pages start it."""
from selenium import webdriver

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage")


def start(patience_s, size="1400,1000", arguments=()):
    """The browser; who starts it quits it. Its scripts may take as long as `patience_s`; its console is kept as the log "browser"."""
    options = webdriver.ChromeOptions()
    for argument in (*ARGUMENTS, f"--window-size={size}", *arguments):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    browser.set_script_timeout(patience_s)
    return browser
