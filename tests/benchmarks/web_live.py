"""Parts of the benchmark `web`: pages while trials report, barriers and refusals of the browser, and optuna-dashboard beside them."""
import collections
import concurrent.futures
import http.client
import importlib.resources
import json
import math
import os
import re
import socket
import statistics
import subprocess
import time
import urllib.request

from selenium.webdriver.support.wait import WebDriverWait

from bench_run import BIN, TUNER, quantile, setup_optuna, usual_or_smoke
from page_case import AXE, WCAG

TRIALS = usual_or_smoke(64, 8)
EACH_S = 0.5  # between two reports of a trial
REPORTED_S = usual_or_smoke(20, 3)
# An hour in which each trial reports every five seconds, in ten minutes.
HOUR_EACH_S = 5 / 6
HOUR_S, FIRST_MINUTE_S = usual_or_smoke((600, 60), (4, 1))
THREADS = 8
PATIENCE_S = 120
GIVES_UP_S = 60

# Of each report: when the frame began that shows the curves with it. What comes in is noted before the page has it, and the frame after
# the next time that the curves are painted.
PIXELS = """
window.reported = [];
let waiting = [];
const Source = window.EventSource;
window.EventSource = class extends Source {
  constructor(...given) {
    super(...given);
    this.addEventListener("values", (event) => {
      const told = JSON.parse(event.data);
      told.trial_id.forEach((id, i) => waiting.push([id, told.step[i]]));
    });
  }
};
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...given) {
  if (waiting.length && this.canvas.closest('section[aria-label="Curves"]')) {
    const shown = waiting;
    waiting = [];
    requestAnimationFrame(() => shown.forEach(([id, step]) => reported.push([id, step, performance.timeOrigin + performance.now()])));
  }
  return clear.apply(this, given);
};
"""
CURVES = """const told = /(\\d+) curves of/.exec(document.querySelector('section[aria-label="Curves"]')?.innerText ?? "");
return told ? Number(told[1]) : 0;"""
# When optuna-dashboard's list of trials was there.
ROWS = """
window.rowsAt = null;
const look = () => {
  const first = document.evaluate("//*[text()='Trial 0']", document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue;
  if (first) window.rowsAt = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


class Reporters:
    """Trials of a client that report at a rate; acknowledged: milliseconds since 1970, by trial and step."""

    def __init__(self, address, study):
        self.address, self.study = address, study
        self.acknowledged, self.steps = {}, collections.Counter()
        connection = http.client.HTTPConnection(address)
        self._post(connection, "/api/studies", {"name": study, "ask_and_tell": True, "metric": {"name": "loss", "direction": "minimize"},
                                                "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}})
        self.trials = [int(self._post(connection, f"/api/studies/{study}/ask", {})["trial_id"]) for _ in range(TRIALS)]
        for trial in self.trials:
            self._report(connection, trial)

    def _post(self, connection, path, body):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = answer.read()
        assert answer.status < 300, told
        return json.loads(told or b"{}")

    def _report(self, connection, trial):
        self.steps[trial] += 1
        step = self.steps[trial]
        self._post(connection, f"/api/trials/{trial}/report", {"step": step, "value": 1 + trial % 7 / 10 + 1 / step})
        self.acknowledged[trial, step] = time.time() * 1000

    def run(self, for_s, each_s):
        """Has all report for so long, each so often, evenly spread. Returns a future of each thread, whose result raises what went wrong."""
        begun = time.monotonic()

        def some(first):
            connection = http.client.HTTPConnection(self.address)
            due = [[begun + each_s * place / TRIALS, trial] for place, trial in enumerate(self.trials) if place % THREADS == first]
            while True:
                due.sort()
                wait = due[0][0] - time.monotonic()
                if due[0][0] > begun + for_s:
                    return
                if wait > 0:
                    time.sleep(wait)
                self._report(connection, due[0][1])
                due[0][0] += each_s

        threads = concurrent.futures.ThreadPoolExecutor(THREADS)
        return [threads.submit(some, first) for first in range(THREADS)]


def watch(browser, address, reporters):
    """Opens the page of the reporters' study, with the curves of all."""
    browser.get("about:blank")
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": PIXELS})
    studies = json.load(urllib.request.urlopen(f"http://{address}/api/view/overview"))["studies"]
    number = next(one["id"] for one in studies if one["name"] == reporters.study)
    browser.get(f"http://{address}/ui/studies/{number}?top={TRIALS}")
    WebDriverWait(browser, PATIENCE_S, poll_frequency=0.2).until(lambda _: browser.execute_script(CURVES) >= TRIALS, "waited for the curves")
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script["identifier"]})


def report_to_pixel(browser, address):
    reporters = Reporters(address, "live")
    watch(browser, address, reporters)
    begun = time.time() * 1000
    for ended in reporters.run(REPORTED_S, EACH_S):
        ended.result()
    sent = {key: at for key, at in reporters.acknowledged.items() if at >= begun}
    WebDriverWait(browser, PATIENCE_S, poll_frequency=0.2).until(
        lambda _: browser.execute_script("return reported.length") >= 0.9 * len(sent), "waited for the reports to be painted")
    shown = {(trial, step): at for trial, step, at in browser.execute_script("return reported")}
    took = [shown[key] - at for key, at in sent.items() if key in shown]
    return {"report_to_pixel_p50_ms": round(statistics.median(took), 1), "report_to_pixel_p95_ms": round(quantile(took, 0.95), 1),
            "reports_per_s": round(len(sent) / REPORTED_S, 1)}


def growth_in_an_hour(browser, address, heap_mb):
    """MB that a tab has more after an hour's events than after the first minute of them."""
    reporters = Reporters(address, "hour")
    watch(browser, address, reporters)
    running = reporters.run(HOUR_S, HOUR_EACH_S)
    time.sleep(FIRST_MINUTE_S)
    first = heap_mb(browser)
    for ended in running:
        ended.result()
    return {"tab_growth_mb": round(heap_mb(browser) - first, 1), "replayed_reports": sum(reporters.steps.values())}


def longest_looks_ms(address):
    """The bucket in which the p99 of all looks at the core's state lies that the service has counted; None: it is beyond the last bound."""
    text = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
    buckets = [(float(bound), int(count)) for bound, count in re.findall(r'espalier_look_seconds_bucket\{le="([^"]+)"\} (\d+)', text)]
    most = buckets[-1][1]
    bound = next(bound for bound, count in buckets if count >= 0.99 * most)
    return round(1000 * bound, 2) if math.isfinite(bound) else None


def barriers(browser, base):
    """What axe-core finds on the pages, and what the policy of their contents refuses."""
    axe = importlib.resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    found = 0
    browser.get_log("browser")
    for path in ("/", "/ui/studies/1", "/ui/studies/1?tab=analysis", "/ui/studies/1?tab=decisions", "/ui/studies/1/trials/3", "/ui/cluster"):
        browser.get(base + path)
        WebDriverWait(browser, PATIENCE_S).until(lambda _: browser.execute_script("return !!document.querySelector('.panel, .tiles')"))
        browser.execute_script(axe)
        found += len(browser.execute_async_script(AXE, WCAG))
    refused = [entry for entry in browser.get_log("browser") if "Content Security Policy" in entry["message"]]
    return {"axe_violations": found, "csp_reports": len(refused)}


def later_code_kb(browser, base):
    """What Analysis and What if load of the pages' files when they are first used."""
    browser.get(f"{base}/ui/studies/1")
    WebDriverWait(browser, PATIENCE_S).until(lambda _: browser.execute_script("return !!document.querySelector('nav.tabs')"))
    browser.execute_script("performance.clearResourceTimings()")
    for tab, panel in (("analysis", "Value by parameter"), ("whatif", "Another policy")):
        browser.execute_script("""history.replaceState(null, "", location.pathname + "?tab=" + arguments[0]);
            window.dispatchEvent(new PopStateEvent("popstate"));""", tab)
        WebDriverWait(browser, PATIENCE_S).until(lambda _: browser.execute_script(
            "return document.querySelector(`section.panel[aria-label='${arguments[0]}']`) !== null", panel))
    loaded = """return performance.getEntriesByType("resource").filter((one) => one.name.includes("/ui-assets/"))
        .reduce((sum, one) => sum + one.encodedBodySize, 0) / 1000;"""
    return round(browser.execute_script(loaded), 1)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def list_of_dashboard(browser, database, folder):
    """Milliseconds until optuna-dashboard shows its list of the same trials; None: it did not within a minute."""
    python = setup_optuna("5.0.0")
    file, port = os.path.join(folder, "optuna.db"), free_port()
    subprocess.run([TUNER, "db", "export-optuna", database, file], check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([python, "-m", "optuna_dashboard._cli", f"sqlite:///{file}", "--host", "127.0.0.1", "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": ROWS})
    try:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, "optuna-dashboard has ended"
            time.sleep(0.1)
        browser.get(f"http://127.0.0.1:{port}/dashboard/studies/1/trials")
        until = time.monotonic() + GIVES_UP_S
        while time.monotonic() < until:
            at = browser.execute_script("return window.rowsAt")
            if at is not None:
                return round(at, 1)
            time.sleep(0.2)
        return None
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script["identifier"]})
        server.terminate()
        server.wait()
