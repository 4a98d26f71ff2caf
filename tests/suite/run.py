"""Builds what the chosen tests need, runs them, and says at the end what failed, what was not run, and what it cost.

scripts/test.sh calls it, after it has installed what is needed, and describes the options.
"""
import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import complaints  # noqa: E402
import load  # noqa: E402
import machine  # noqa: E402
import repeats  # noqa: E402
import table as tables  # noqa: E402
import uses  # noqa: E402

ROOT = uses.ROOT
LOGS = ROOT / "build/test-logs"
GREEN = LOGS / "green.json"
FAILED_LOGS = LOGS / "failed"  # of this call alone
LINT_MARK = "scripts/linted-commit"
TESTS_AT_ONCE = {"ci": 3}  # most of them wait; those under sanitizers compute
PART_LEFT_OUT_AFTER_S = 55 * 60
KEPT_OUTPUT = 1 << 20  # bytes of a test that has passed, in which it names cases that it left out
DEAREST = 10
DEARER, DEARER_S = 1.5, 5  # than the table says, by that factor and so many seconds: told
LOOP = """
import time
best = 9e9
for _ in range(5):
    began = time.process_time()
    s = 0
    for i in range(10**7): s += i
    best = min(best, time.process_time() - began)
print(best)
"""
BEGAN = time.monotonic() - float(os.environ.get("ESPALIER_SECONDS_SPENT", "0"))


def heading(text):
    print(f"\n==== [{time.monotonic() - BEGAN:4.0f} s] {text}", flush=True)


def stop_with(text, *more):
    """The end, where nothing can be tested."""
    print("\n".join([text, *more, "0 passed, 1 failed"]), flush=True)
    sys.exit(1)


class Step:
    """A command into a log, beside what else runs, with the processor seconds that it and its children took."""

    def __init__(self, name, command, niceness=0, environment=None):
        self.name, self.log = name, LOGS / f"{name.replace(' ', '-')}.log"
        self.seconds, self.code = 0.0, None
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(["nice", "-n", str(niceness), *command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT, env=environment)
        self.waiter = threading.Thread(target=self._wait, daemon=True)
        self.waiter.start()

    def _wait(self):
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = used.ru_utime + used.ru_stime
        self.code = self.process.returncode

    def wait(self):
        self.waiter.join()
        return self.code

    def tell(self, lines=60):
        print("".join(self.log.read_text(errors="replace").splitlines(True)[-lines:]), flush=True)


@dataclasses.dataclass
class Outcome:
    """Of one test in one build."""
    test: str
    build: str
    suite: str  # which of its cases: see launch.py
    status: str  # passed, failed or not run
    seconds: float
    clock_s: float
    why: list


class Session:
    """One call of the script: steps, outcomes, and what they add up to."""

    def __init__(self, options, table):
        self.options, self.table = options, table
        self.outcomes, self.problems, self.notes = [], [], []
        self.costs = collections.OrderedDict()  # of set-up, builds and linter
        self.passed = self.failed = 0
        self.set_up = None
        self.beside = False  # whether tests of several builds run at once

    # Builds.

    def add_cost(self, what, seconds):
        self.costs[what] = self.costs.get(what, 0) + seconds

    def do(self, what, name, command, niceness=0):
        """Runs a step of a build to its end; whether it went well."""
        step = Step(name, command, niceness)
        code = step.wait()
        self.add_cost(what, step.seconds)
        if code:
            step.tell()
        return code == 0

    def configure(self, build):
        return self.do(f"build {build}", f"{build} configure", ["cmake", "--preset", build])

    def build(self, build, wanted):
        """Configures, and builds the programs of these tests. Whether it went well."""
        heading(f"{build}: build")
        if not self.configure(build):
            return self.not_built(build, "its preset does not configure")
        registered, built = uses.registered(build), uses.outputs(build)
        programs = sorted({path for name in wanted if name in registered for path in uses.programs(registered[name], built)})
        if not programs:
            return True
        jobs = subprocess.run(["bash", "-c", "source scripts/steps.sh; build_jobs"], cwd=ROOT, text=True, capture_output=True,
                              check=True).stdout.strip()
        if not self.do(f"build {build}", f"{build} build", ["ninja", "-C", f"build/{build}", "-j", jobs, *programs],
                       niceness=10):
            return self.not_built(build, "the build failed")
        return True

    def not_built(self, build, why):
        self.failed += 1
        self.problems.append(f"{build}: {why}, see build/test-logs/{build}-*.log")
        return False

    def wait_for_set_up(self):
        """Ends the script if that has failed: most tests would fail for want of it."""
        if self.set_up is None:
            return
        code = self.set_up.wait()
        self.add_cost("set-up", self.set_up.seconds)
        if code:
            self.set_up.tell()
            stop_with("what the tests need could not be installed")
        self.set_up = None

    # Tests.

    def selected(self, rows):
        """Those of the rows that --filter names: build -> tests in the order of the builds."""
        chosen = {}
        for build in tables.BUILDS:
            names = [row.test for row in rows if row.build == build and
                     (not self.options.filter or re.search(self.options.filter, row.test))]
            if names:
                chosen[build] = list(dict.fromkeys(names))
        return chosen

    def check_listed(self, builds):
        """Each test that a build has is in the table, and the other way round."""
        found = tables.unlisted(self.table, {build: uses.registered(build) for build in builds})
        if found:
            self.failed += 1
            self.problems += found

    def test(self, build, names, suite, name=None):
        """Starts the tests; what is returned waits for them and takes up what they did."""
        log = LOGS / f"{name or build}.log"
        record, junit = log.with_suffix(".jsonl"), log.with_suffix(".xml")
        for path in (record, junit):
            path.unlink(missing_ok=True)
        self.write_costs(build)
        environment = dict(os.environ, ESPALIER_SUITE=suite, ESPALIER_RECORD=str(record),
                           ESPALIER_FAILED_LOGS=str(FAILED_LOGS), PYTHONHASHSEED="0")
        pattern = "^(" + "|".join(re.escape(test) for test in names) + ")$"
        at_once = TESTS_AT_ONCE.get(build, 1 if self.beside else 2)
        step = Step(log.stem, ["ctest", "--preset", build, "-j", str(at_once), "--output-on-failure", "--no-tests=error",
                               "--test-output-size-passed", str(KEPT_OUTPUT), "--output-junit", str(junit), "-R", pattern],
                    environment=environment)

        def finish():
            step.wait()
            return self.take_up(build, suite, names, log, record, junit)
        return finish

    def write_costs(self, build):
        """The longest first, also where none ran before."""
        path = ROOT / "build" / build / "Testing/Temporary/CTestCostData.txt"
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        costs = collections.Counter()
        for row in self.table.rows:
            if row.build == build:
                costs[row.test] += row.seconds
        path.write_text("".join(f"{test} 1 {seconds}\n" for test, seconds in costs.items()) + "---\n")

    def take_up(self, build, suite, names, log, record, junit):
        lines = {}
        if record.exists():
            for line in record.read_text().splitlines():
                entry = json.loads(line)
                lines[entry["test"]] = entry
        statuses, left_out = {}, {}
        with contextlib.suppress(OSError, xml.etree.ElementTree.ParseError):
            for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
                statuses[case.get("name")] = case.get("status")
                left_out[case.get("name")] = re.findall("^not tested: (.*)$", case.findtext("system-out") or "", re.M)
        outcomes = []
        for name in names:
            line = lines.get(name, {})
            status = {"run": "passed", "notrun": "not run"}.get(statuses.get(name), "failed")
            if line.get("not_run"):
                status = "not run"
            elif status == "not run":
                status = "failed"  # CTest could not start it
            self.notes += [f"not run, a case of {name} ({build}): {why}" for why in left_out.get(name, [])]
            outcomes.append(Outcome(name, build, suite, status, line.get("seconds", 0), line.get("clock_s", 0),
                                    line.get("not_run", [])))
        self.outcomes += outcomes
        for outcome in outcomes:
            self.passed += outcome.status == "passed"
            self.failed += outcome.status == "failed"
        failed = [outcome.test for outcome in outcomes if outcome.status == "failed"]
        if failed:
            text = log.read_text(errors="replace")
            print(text, flush=True)
            self.problems.append("\n  ".join([f"{build}: {', '.join(failed)} failed, see above and {log.relative_to(ROOT)}",
                                              *complaints.of_log(text)]))
        print(f"{build}: {sum(o.status == 'passed' for o in outcomes)} passed, {len(failed)} failed, "
              f"{sum(o.status == 'not run' for o in outcomes)} not run", flush=True)
        return outcomes

    def run_again(self, outcomes):
        """Those that failed, once more and alone: what passes now fails by chance, and is written down."""
        for failed in outcomes:
            if failed.status != "failed":
                continue
            heading(f"{failed.test} ({failed.build}), which failed, once more")
            before = self.passed, self.failed, list(self.problems), list(self.outcomes)
            [again] = self.test(failed.build, [failed.test], failed.suite, name=f"{failed.build}-again-{failed.test}")()
            self.passed, self.failed, self.problems, self.outcomes = before
            if again.status == "passed":
                repeats.add({(failed.test, failed.build): (2, 1)})
                self.notes.append(f"{failed.test} ({failed.build}) failed, and passed when it was run again: it fails by chance. It is "
                                  "in tests/suite/repeats.txt until its reason is found")

    @property
    def suite(self):
        """Which of their cases the tests run."""
        return "all" if self.options.thorough else "rest" if self.options.part else "standard"

    # The linter.

    def lint(self, *options):
        return Step("lint", ["scripts/lint.sh", *options], niceness=19)

    def finish_lint(self, step):
        heading("linter")
        code = step.wait()
        self.add_cost("linter", step.seconds)
        if code == 0:
            self.passed += 1
            step.tell(1)
        else:
            step.tell(400)
            self.failed += 1
            self.problems.append("linter: see build/test-logs/lint.log")

    # The end.

    def told_costs(self, loop_s):
        tests = sum(outcome.seconds for outcome in self.outcomes)
        spent = "".join(f", {what} {seconds:.0f}" for what, seconds in self.costs.items())
        yield f"processor seconds: tests {tests:.0f}{spent}"
        dearest = sorted(self.outcomes, key=lambda o: -o.seconds)[:DEAREST]
        if dearest:
            yield "dearest: " + ", ".join(f"{o.test} ({o.build}) {o.seconds:.0f}" for o in dearest)
        yield f"loop_s {loop_s:.2f}"
        scale = self.table.loop_s / loop_s
        for outcome in self.outcomes:
            said = self.table.seconds_of(outcome.test, outcome.build, outcome.suite)
            if outcome.status == "passed" and outcome.seconds * scale > DEARER * said + DEARER_S:
                yield (f"{outcome.test} ({outcome.build}) took {outcome.seconds * scale:.0f} processor seconds at the speed of "
                       f"tests/suite/table.txt, which says {said:g}")

    def told_not_run(self):
        """Tests by name, those with the same reason together."""
        by_reason = collections.OrderedDict()
        for outcome in self.outcomes:
            if outcome.status == "not run":
                by_reason.setdefault("; ".join(outcome.why), []).append(outcome.test)
        for why, names in by_reason.items():
            yield f"not run: {', '.join(names)}: {why}"

    def summary(self, loop_s):
        heading("summary")
        for line in [*self.told_costs(loop_s), *self.told_not_run(), *self.notes, *self.problems]:
            print(line)
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 0 if self.failed == 0 else 1


def measure_loop():
    """The speed of the machine: the least of five processor times of ten million additions at a module's level."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(LOOP)
        file.flush()
        return float(subprocess.run(["/usr/bin/python3", file.name], text=True, capture_output=True, check=True).stdout)


def part_of_commit(table):
    """A part, by the commit's hash: each commit has one, and all have their turn."""
    parts = table.parts()
    commit = repeats.commit().rstrip("+")
    return parts[int(commit, 16) % len(parts)] if commit != "none" else parts[0]


def tell_what_the_machine_lacks(rows):
    """Asked once: the tests are told by a variable."""
    lacks = machine.missing(sorted({need for row in rows for need in row.needs} | {"ptrace"}))
    for name, lack in lacks.items():
        tests = sorted({row.test for row in rows if name in row.needs})
        without = f"not run: {', '.join(tests)}" if tests else "memory leaks are not looked for"
        print(f"this machine lacks {name}: {lack.reason}\n  {without}\n  what would allow them: {lack.remedy}")
    if not lacks:
        print("this machine allows all that the tests need")
    os.environ["ESPALIER_LACKS"] = json.dumps({name: [lack.reason, lack.remedy] for name, lack in lacks.items()})


def run_standard(session, chosen, lint):
    """Programs without sanitizers first, since their tests wait most of the time: what is built next, its tests and the linter
    have the processors meanwhile."""
    finishes, session.beside = [], True
    for build, names in chosen.items():
        built = session.build(build, names)
        if build == "ci":
            # Which tests there are is seen where the preset is configured after all that they need is there.
            session.wait_for_set_up()
            built = built and session.configure(build)
        if built:
            heading(f"{build}: {len(names)} tests")
            finishes.append(session.test(build, names, session.suite))
    step = session.lint(*lint) if lint is not None else None
    for finish in finishes:
        finish()
    session.beside = False
    if step:
        session.finish_lint(step)


def run_part(session, part):
    """One part of the thorough suite: the cases that the standard suite leaves, tests that it has not, sources to lint."""
    heading(f"part {part} of the thorough suite")
    rows = session.table.of(part)
    for build, names in session.selected(rows).items():
        if session.build(build, names):
            session.test(build, names, "rest", name=f"part-{part}-{build}")()
    if part in session.table.lint and not session.options.filter:
        session.finish_lint(session.lint("--thorough", "--filter", session.table.lint[part]))


def read_green():
    """Digests of tests when their standard cases passed last."""
    return json.loads(GREEN.read_text()) if GREEN.exists() else {}


def only_changed(session, chosen):
    """Leaves out what has not changed since it last passed."""
    green, digests, kept, left = read_green(), uses.Digests(), {}, 0
    for build, names in chosen.items():
        if not session.build(build, names):
            continue
        registered = uses.registered(build)
        for name in names:
            if name in registered and green.get(f"{build} {name}") == digests.of(registered[name], build):
                left += 1
            else:
                kept.setdefault(build, []).append(name)
    session.notes.append(f"--changed: {left} tests were left out, which passed with the same programs and files")
    return kept


def remember_green(session):
    """What passed, with what it ran and read. The cases that a part has say nothing of those that it leaves."""
    green, digests = read_green(), uses.Digests()
    outcomes = [outcome for outcome in session.outcomes if outcome.suite != "rest"]
    registered = {build: uses.registered(build) for build in sorted({outcome.build for outcome in outcomes})}
    for outcome in outcomes:
        key = f"{outcome.build} {outcome.test}"
        if outcome.status == "passed":
            green[key] = digests.of(registered[outcome.build][outcome.test], outcome.build)
        else:
            green.pop(key, None)
    GREEN.write_text(json.dumps(green, indent=0, sort_keys=True))


def run_repeatedly(session, chosen):
    """Each of the tests --repeat times, whatever fails."""
    beside_load = session.options.beside_load
    counts = collections.defaultdict(lambda: [0, 0])
    for build, names in chosen.items():
        if not session.build(build, names):
            continue
        session.wait_for_set_up()
        with load.beside() if beside_load else contextlib.nullcontext():
            for turn in range(1, session.options.repeat + 1):
                heading(f"{build}: {len(names)} tests, time {turn} of {session.options.repeat}")
                for outcome in session.test(build, names, session.suite, name=f"{build}-{turn}")():
                    if outcome.status != "not run":
                        counts[outcome.test, build][0] += 1
                        counts[outcome.test, build][1] += outcome.status == "failed"
    repeats.add({key: tuple(count) for key, count in counts.items()}, beside_load=beside_load)
    for (test, build), (runs, failed) in sorted(counts.items()):
        if failed:
            session.notes.append(f"{test} ({build}) failed {failed} of {runs} times")


def parsed(arguments):
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for flag in ("--thorough", "--changed", "--beside-load", "--ci"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--part", type=int)
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--filter")
    return parser.parse_args(arguments)


def set_up_for_tests():
    return Step("set-up", ["bash", "-c", "source scripts/steps.sh && install_for_tests"])


def rows_of(options, table):
    if options.part:
        if options.part not in table.parts():
            stop_with(f"--part {options.part}: the thorough suite has the parts {', '.join(map(str, table.parts()))}")
        return table.of(options.part)
    return table.rows if options.thorough else table.of(tables.STANDARD)


def main(arguments):
    options = parsed(arguments)
    table = tables.load()
    LOGS.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(FAILED_LOGS, ignore_errors=True)
    session = Session(options, table)
    session.add_cost("set-up", float(os.environ.get("ESPALIER_SET_UP_SECONDS", "0")))
    loop_s = measure_loop()
    rows = rows_of(options, table)
    tell_what_the_machine_lacks(table.rows if options.ci else rows)
    for fault in tables.faults(table):
        session.problems.append(f"tests/suite/table.txt: {fault}")
        session.failed += 1
    session.set_up = set_up_for_tests()
    chosen = session.selected(rows)
    if options.filter and not chosen:
        known = sorted({row.test for row in table.rows if re.search(options.filter, row.test)})
        stop_with(f'--filter "{options.filter}": no test of this suite has such a name', *(
            [f"in the thorough suite: {', '.join(known)}"] if known else []))
    if options.part:
        session.wait_for_set_up()
        run_part(session, options.part)
    elif options.repeat:
        run_repeatedly(session, chosen)
    else:
        if options.changed:
            session.wait_for_set_up()
            chosen = only_changed(session, chosen)
        lint = None if options.filter else ["--thorough"] if options.thorough else ["--since", LINT_MARK]
        run_standard(session, chosen, lint)
    if not options.filter and not options.repeat and not options.part:
        session.check_listed(chosen)
    if options.ci:
        part = part_of_commit(table)
        if time.monotonic() - BEGAN > PART_LEFT_OUT_AFTER_S:
            session.notes.append(f"part {part} of the thorough suite was left out: 55 minutes have passed")
        else:
            run_part(session, part)
            session.notes.append(f"part {part} of the thorough suite was run, as the commit's hash says")
    if not options.repeat:
        session.run_again(list(session.outcomes))
    remember_green(session)
    return session.summary(loop_s)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
