#!/usr/bin/env python3
# bench: web - the pages in headless Chromium: loads, filters, zoom, memory, from a report to its pixel, what viewers cost the service; optuna-dashboard beside
# builds: tuner bench_fill_database bench_optuna_load
"""A pool study of finished trials of ten values each, from a database that is filled beforehand, on loopback; each load with
an empty cache, medians unless the key says p95. `usable` is when the curves are drawn and the table's first rows are there.
`owner_held_p99_ms` is null beyond 1 s, the last bound of `espalier_look_seconds`.
web_live.py has pages while trials report, and optuna-dashboard on the same 10,000 trials. With --long, which takes ten minutes more, it
tells as well how much a tab grows by an hour's events. `loop_s` is the machine's speed (docs/testing.md)."""
import concurrent.futures
import contextlib
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("e2e/web", "suite")]
from environment import run_inside  # noqa: E402

if __name__ == "__main__":
    run_inside(os.path.abspath(__file__))

from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

import chromium  # noqa: E402
from bench_run import BIN, SMOKE, optuna_load, quantile, resident_mb, serve, start_service, told_address, usual_or_smoke  # noqa: E402
from run import measure_loop  # noqa: E402
from web_live import (barriers, growth_in_an_hour, later_code_kb, list_of_dashboard, longest_looks_ms,  # noqa: E402
                      report_to_pixel)

SMALL, MIDDLE, LARGE, VALUES = *usual_or_smoke((1_000, 10_000, 100_000), (20, 50, 100)), 10
LOADS = usual_or_smoke(5, 1)
GESTURES = usual_or_smoke(30, 2)
VIEWERS = 10
CAPACITY_TRIALS = usual_or_smoke(6000, 80)
PATIENCE_S = 120

# Looks at each frame whether the page has come so far, and notes when.
WATCH = """
window.seen = {};
const painted = (canvas) => {
  if (!canvas || !canvas.width) return false;
  const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return data.some((pixel) => pixel !== data[0]);
};
const look = () => {
  const table = document.querySelector("table[role=grid]");
  const rows = document.querySelectorAll("table[role=grid] tbody tr[aria-rowindex]").length;
  if (!seen.usable && rows > 3 && painted(document.querySelector('section[aria-label="Curves"] canvas'))) seen.usable = performance.now();
  if (!seen.all && table && Number(table.getAttribute("aria-rowcount")) > window.wanted) seen.all = performance.now();
  if (!seen.usable || !seen.all) requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
# Milliseconds from a change of the address until the frame that shows it.
ADDRESS = """
const done = arguments[arguments.length - 1];
const begun = performance.now();
history.replaceState(null, "", location.pathname + arguments[0]);
window.dispatchEvent(new PopStateEvent("popstate"));
requestAnimationFrame(() => setTimeout(() => done([performance.now() - begun, document.querySelector("table[role=grid]").getAttribute("aria-rowcount")]), 0));
"""
ZOOM = """
const done = arguments[arguments.length - 1];
const place = document.querySelector(`section[aria-label="${arguments[1]}"] .plot-overlay`);
place.scrollIntoView({block: "center"});
const box = place.getBoundingClientRect();
const frames = [];
let before = performance.now(), left = arguments[0];
const step = (now) => {
  frames.push(now - before);
  before = now;
  if (--left < 0) return done(frames.slice(1));
  place.dispatchEvent(new WheelEvent("wheel", {deltaY: left % 2 ? -120 : 60, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2,
                                               bubbles: true, cancelable: true, ctrlKey: true}));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


@contextlib.contextmanager
def browsing():
    browser = chromium.start(PATIENCE_S)
    try:
        yield browser
    finally:
        browser.quit()


def load(browser, address, trials):
    """Milliseconds of the first paint, until the page is usable, and until all columns are there; bytes that came of its files."""
    browser.get("about:blank")
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.clearBrowserCache", {})
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": f"window.wanted = {trials};" + WATCH})
    browser.get(address)
    WebDriverWait(browser, PATIENCE_S, poll_frequency=0.2).until(
        lambda _: browser.execute_script("return window.seen.usable && window.seen.all"), f"waited for {trials} trials at {address}")
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script["identifier"]})
    return browser.execute_script("""
        const paint = performance.getEntriesByName("first-contentful-paint")[0];
        const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource").filter(
            (one) => one.name.includes("/ui-assets/"))];
        return {paint: paint.startTime, usable: seen.usable, all: seen.all, kb: files.reduce((sum, one) => sum + one.encodedBodySize, 0) / 1000};""")


def of_study(browser, base, trials):
    return [load(browser, f"{base}/ui/studies/1", trials) for _ in range(LOADS)]


def median(loads, key):
    return round(statistics.median(one[key] for one in loads), 1)


def heap_mb(browser):
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return browser.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"] / 1e6


def gestures(browser):
    """Of the page of the large study, which is open: what a condition, an order and the wheel take."""
    def change(query):
        took, rows = browser.execute_async_script(ADDRESS, query)
        return took, int(rows) - 1
    filters, sorts = [], []
    for i in range(GESTURES):
        took, rows = change(f"?f={'number%20..' + str(LARGE // 2 - i) + '%3B%20state%3A%20complete%3B%20value%20..0.9'}")
        assert 0 < rows < LARGE, rows
        filters.append(took)
        change("")
        sorts.append(change(f"?sort={'-' if i % 2 else ''}slot_seconds")[0])
    change("?top=200")
    # Of 200 curves, and of the slots that 100,000 spans were held of.
    zoomed = [quantile(browser.execute_async_script(ZOOM, GESTURES, picture), 0.95) for picture in ("Curves", "Slots of this study")]
    return {"filter_ms": round(statistics.median(filters), 1), "sort_ms": round(statistics.median(sorts), 1),
            "zoom_p95_ms": round(zoomed[0], 1), "zoom_spans_p95_ms": round(zoomed[1], 1)}


class Viewer(threading.Thread):
    """What a page keeps open and asks again: the stream of events, and the overview at each of them."""

    def __init__(self, base):
        super().__init__(daemon=True)
        self.base = base
        self.answer = urllib.request.urlopen(f"{base}/api/view/events", timeout=PATIENCE_S)
        self.start()

    def run(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it is closed while it reads
            for line in self.answer:
                if line.startswith(b"event: changed"):
                    urllib.request.urlopen(f"{self.base}/api/view/overview", timeout=PATIENCE_S).read()

    def close(self):
        self.answer.fp.raw._sock.shutdown(2)


def viewers_cost(database):
    """MB more with viewers who have all read the study, and for how long looks at it kept everything else waiting."""
    with start_service(database) as (process, _, http):
        base = f"http://{http}"
        read = lambda: urllib.request.urlopen(f"{base}/api/view/studies/1/trials", timeout=PATIENCE_S).read()
        read()
        before = resident_mb(process.pid)
        viewers = [Viewer(base) for _ in range(VIEWERS)]
        with concurrent.futures.ThreadPoolExecutor(VIEWERS) as pool:
            list(pool.map(lambda _: read(), range(VIEWERS)))
        more = resident_mb(process.pid) - before
        held = longest_looks_ms(http)
        for viewer in viewers:
            viewer.close()
        return {"service_extra_mb": round(more, 1), "owner_held_p99_ms": held}


def capacity_ratio(folder):
    """Calls a second of Optuna's protocol with viewers over those without, in turns."""
    ratios = []
    for turn in range(usual_or_smoke(5, 1)):
        rates = {}
        for watched in (turn % 2 == 0, turn % 2 == 1):
            process = serve(os.path.join(folder, f"capacity{turn}{watched}.db"), "--http", "127.0.0.1:0")
            grpc, http = told_address(process), told_address(process, "HTTP")
            viewers = [Viewer(f"http://{http}") for _ in range(VIEWERS if watched else 0)]
            rates[watched] = optuna_load(grpc, 8, 8, CAPACITY_TRIALS)["calls_per_s"]
            for viewer in viewers:
                viewer.close()
            process.terminate()
            process.wait()
        ratios.append(rates[True] / rates[False])
    return round(statistics.median(ratios), 3)


def assets_kb():
    """What the pages add to the program: each file packed twice."""
    folder = pathlib.Path(BIN).parent / "tuner" / "web" / "assets"
    packed = [path for kind in ("br", "gz") for path in glob.glob(f"{folder}/**/*.{kind}", recursive=True)]
    assert packed, f"no pages below {folder}: was this built with ESPALIER_WEB?"
    return round(sum(os.path.getsize(path) for path in packed) / 1000, 1)


def of_databases(databases):
    """What is seen of studies that have ended."""
    figures = {}
    with browsing() as browser:
        with start_service(databases[SMALL]) as (_, _, http):
            small = of_study(browser, f"http://{http}", SMALL)
            figures |= barriers(browser, f"http://{http}") | {"analysis_kb": later_code_kb(browser, f"http://{http}")}
        with start_service(databases[LARGE]) as (_, _, http):
            large = of_study(browser, f"http://{http}", LARGE)
            figures |= {"first_load_kb": median(small, "kb"), "first_paint_ms": median(small, "paint"),
                        f"study_{SMALL}_ms": median(small, "usable"), f"study_{LARGE}_ms": median(large, "usable"),
                        "all_columns_ms": median(large, "all"), "tab_mb": round(heap_mb(browser), 1)}
            figures |= gestures(browser)
    return figures


def of_reports(folder, long):
    """What is seen while trials report."""
    figures = {}
    with browsing() as browser, start_service(os.path.join(folder, "live.db")) as (_, _, http):
        figures |= report_to_pixel(browser, http)
        if long:
            figures |= growth_in_an_hour(browser, http, heap_mb)
    return figures


def beside_dashboard(database, folder):
    """Of the same trials: until all of them can be scrolled to."""
    with browsing() as browser:
        with start_service(database) as (_, _, http):
            ours = load(browser, f"http://{http}/ui/studies/1", MIDDLE)
        figures = {f"study_{MIDDLE}_ms": round(ours["usable"], 1), f"study_{MIDDLE}_all_ms": round(ours["all"], 1)}
        if not SMOKE:
            figures["optuna_dashboard_list_ms"] = list_of_dashboard(browser, database, folder)
        return figures


def main():
    long = "--long" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        databases = {}
        for trials in (SMALL, MIDDLE, LARGE):
            databases[trials] = os.path.join(folder, f"{trials}.db")
            subprocess.run([os.path.join(BIN, "bench_fill_database"), "pool", databases[trials], str(trials), str(VALUES)], check=True)
        figures = {"loop_s": round(measure_loop(), 3)} | of_databases(databases) | of_reports(folder, long)
        figures |= viewers_cost(databases[LARGE]) | {"optuna_capacity_ratio": capacity_ratio(folder), "tuner_growth_kb": assets_kb()}
        figures |= beside_dashboard(databases[MIDDLE], folder)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
