"""Runs targets of libFuzzer for scripts/fuzz.sh, and adds up what they came to.

A target goes on in rounds, each from the corpus of the one before, until it has had the runs it has to have and its
coverage (edges) has not grown in the last tenth of them.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEDS = ROOT / "tests/fuzz/corpus"
WORDS = ROOT / "tests/fuzz/words"
BUILD = ROOT / "build/fuzz"
PROGRAMS = pathlib.Path(os.environ.get("ESPALIER_BIN", BUILD / "bin"))

RUNS = 500_000
RUNS_OF = {"optuna_file": 50_000}  # each writes a database
QUIET = 0.1  # the last part of a target's runs, in which its coverage has not grown
# Bytes of an input at most. Texts that nobody could read take most of the time; a request has to be longer than what
# the service takes of one at a time.
LENGTH = 600
LENGTH_OF = {"http": 20_000, "optuna_file": 16_384}
# What mutations put in beside bytes: tests/fuzz/words.
WORDS_OF = {"nni_body": "json", "optuna_json": "json", "study_file": "json", "search_space": "json", "messages": "json",
            "optuna_file": "json", "adaptdl_job": "yaml"}
# libFuzzer counts by the clock, on machines that do other things too, or stand still for a while. So what it calls slow
# runs once more by itself, and is a finding if it takes this much of a processor.
SLOW_S = 30
# The weights by which libFuzzer would choose what to mutate ("entropic") cost it two thirds of a study file's time, and
# found no more.
OPTIONS = ["-timeout=60", "-report_slow_units=60", "-rss_limit_mb=2560", "-print_final_stats=1", "-entropic=0"]
MEMORY = "/dev/shm"  # where targets make their files
INTERRUPTED = 72  # libFuzzer's exit status
LINE = re.compile(r"^#(\d+)\s+(INITED|NEW|REDUCE|RELOAD|pulse|DONE)\s+cov: (\d+) ft: (\d+)")


class Wrong(Exception):
    """A call that cannot be meant."""


def targets():
    listed = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
    return re.findall(r"^ *espalier_fuzz_target\((\w+)", listed, re.MULTILINE)


class Progress:
    """What the lines of rounds say, one after the other."""

    def __init__(self):
        self.runs = 0
        self.edges = 0
        self.features = 0
        self.grew_at = 0  # runs, when there were last more edges

    def read(self, line, before):
        found = LINE.match(line)
        if not found:
            return
        runs, _, edges, features = found.groups()
        self.runs = before + int(runs)
        self.features = max(self.features, int(features))
        if int(edges) > self.edges:
            self.edges = int(edges)
            self.grew_at = self.runs

    def quiet(self):
        return self.grew_at <= self.runs * (1 - QUIET)


def fuzz(target, wanted, seconds):
    """The figures of one target."""
    corpus, findings = BUILD / "corpus" / target, BUILD / "findings" / target
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    progress, began, found = Progress(), time.monotonic(), []
    while not found:
        left_s = seconds - (time.monotonic() - began)
        if left_s < 1 or (progress.runs >= wanted and progress.quiet()):
            break
        # Then as many more as make the latest growth old enough, and not so few that starting takes longer.
        more = max(wanted - progress.runs, int(progress.grew_at / (1 - QUIET)) - progress.runs, progress.runs // 10, 1000)
        found = round_of(target, corpus, findings, more, left_s, progress)
    return {"target": target, "runs": progress.runs, "seconds": round(time.monotonic() - began), "edges": progress.edges,
            "features": progress.features, "grew_last_at": round(progress.grew_at / max(progress.runs, 1), 2),
            "findings": found}


def round_of(target, corpus, findings, runs, seconds, progress):
    """One process of libFuzzer; the inputs that broke something."""
    there = set(findings.iterdir())
    command = [PROGRAMS / f"fuzz_{target}", f"-runs={runs}", f"-max_total_time={int(seconds)}",
               f"-artifact_prefix={findings}/", f"-max_len={LENGTH_OF.get(target, LENGTH)}", *OPTIONS,
               *([f"-dict={WORDS / WORDS_OF[target]}"] if target in WORDS_OF else []), corpus, SEEDS / target]
    environment = os.environ | {"ASAN_OPTIONS": "malloc_context_size=4", "UBSAN_OPTIONS": "print_stacktrace=1"}
    if os.path.isdir(MEMORY):
        environment["TMPDIR"] = MEMORY
    before, last = progress.runs, []
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace",
                          env=environment) as process:
        for line in process.stderr:
            progress.read(line, before)
            last = [*last[-79:], line]
    new = set(findings.iterdir()) - there
    slow = {path for path in new if path.name.startswith(("slow-unit-", "timeout-"))}
    fast = {path for path in slow if not is_slow(command[0], path, environment)}
    for path in fast:
        path.unlink()
    found = sorted(str(path.relative_to(ROOT)) for path in new - fast)
    if process.returncode not in (0, INTERRUPTED) and not new:
        found = [f"exit status {process.returncode}"]
    if found:
        sys.stderr.writelines(last)
    return found


def is_slow(program, path, environment):
    """Whether the input takes more than SLOW_S of a processor, or breaks something."""
    once = subprocess.run(["prlimit", f"--cpu={SLOW_S}", program, path], env=environment, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return once.returncode != 0


def parse(arguments):
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seconds", type=int, default=10**7)
    parser.add_argument("--jobs", type=int, default=1)
    try:
        options, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise Wrong(str(error)) from error
    there = targets()
    for name in options.names:
        if name not in [*there, "all"]:
            raise Wrong(f'no target "{name}"; there are: {", ".join(there)}')
    if unknown or min(options.seconds, options.jobs, 1 if options.runs is None else options.runs) < 1:
        raise Wrong(f"unknown: {' '.join(unknown)}" if unknown else "numbers begin at 1")
    return options, there if "all" in options.names else options.names


def main():
    try:
        options, names = parse(sys.argv[1:])
    except Wrong as error:
        print(f"fuzz.sh: {error}", file=sys.stderr)
        return 2
    if options.targets or not names:
        print("\n".join(names or targets()))
        return 0
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        one = lambda name: fuzz(name, options.runs or RUNS_OF.get(name, RUNS), options.seconds)
        for row in pool.map(one, names):
            print("{target}: {runs} runs in {seconds} s, {edges} edges and {features} features, which last grew at "
                  "{grew_last_at} of them, findings: {n}".format(**row, n=len(row["findings"])), flush=True)
            rows.append(row)
    found = sum(len(row["findings"]) for row in rows)
    print(json.dumps({"runs": sum(row["runs"] for row in rows), "findings": found, "targets": rows}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
