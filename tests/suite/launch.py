"""Runs one test for CTest: usage: launch.py TEST BUILD COMMAND...

Counts the processor seconds of everything that the command starts, also of what outlives its parent, and chooses its cases:
  ESPALIER_SUITE    all (what CTest alone runs), standard, or rest: the cases that the standard suite leaves (table.txt)
  ESPALIER_LACKS    what the machine lacks, as JSON, {name: [reason, remedy]}; else it is asked here
  ESPALIER_RECORD   a file that gets a line of JSON: test, build, seconds by processor and clock, exit status
Where the machine lacks what the test needs it is not run, which exit status 77 says; with ESPALIER_REQUIRE=all it has failed.
"""
import ctypes
import json
import os
import pathlib
import resource
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import machine  # noqa: E402
import table  # noqa: E402
from cases import cases_of  # noqa: E402

NOT_RUN = 77
FAILED_TO_START = 127
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def python_file(command):
    """Where in the command the test's Python file stands, or None."""
    return next((at for at, word in enumerate(command) if word.endswith(".py") and at <= 3), None)


def with_filter(command, patterns, alone):
    """The command of a GoogleTest program that runs the cases so named alone, or all others. One that has a filter keeps to it."""
    own = next((word for word in command if word.startswith("--gtest_filter=")), None)
    others = [word for word in command if word is not own]
    if alone:
        return [*others, "--gtest_filter=" + ":".join(patterns)]
    kept = own.removeprefix("--gtest_filter=") if own else "*"
    return [*others, f"--gtest_filter={kept}{':' if '-' in kept else '-'}{':'.join(patterns)}"]


def chosen(command, cases, rest):
    """The command that runs those cases of the test, or all others. Raises TableError for cases that there are not."""
    if not cases:
        return command
    patterns, run = table.listed(cases)
    alone = run != rest
    if python_file(command) is None:
        return with_filter(command, patterns, alone)
    known = cases_of(command[python_file(command)])
    for pattern in patterns:
        if not any(table.matches(pattern, case) for case in known):
            raise table.TableError(f'table.txt: "{pattern}" is no case of {command[python_file(command)]}; there are '
                                   f'{" ".join(known)}')
    wanted = [case for case in known if any(table.matches(pattern, case) for pattern in patterns) == alone]
    return [*command, *wanted]


def lacks_of(needs):
    """What of the needs the machine lacks, a line each."""
    if "ESPALIER_LACKS" in os.environ:
        told = json.loads(os.environ["ESPALIER_LACKS"])
    else:
        told = {name: [lack.reason, lack.remedy] for name, lack in machine.missing(needs).items()}
    return [f"{name}: {told[name][0]} ({told[name][1]})" for name in needs if name in told]


def run(command):
    """Exit status of the command, after everything of it that has ended was waited for."""
    # What outlives its parent comes to this process, which counts it and buries it as init would.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    pid = os.fork()
    if pid == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # CTest kills this process alone when a test takes too long
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(FAILED_TO_START)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command has it, too
    status = None
    while True:
        try:
            ended, with_status = os.waitpid(-1, 0 if status is None else os.WNOHANG)
        except ChildProcessError:
            break
        if ended == 0:
            break
        if ended == pid:
            status = with_status
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def add_asan_option(option):
    os.environ["ASAN_OPTIONS"] = f"{os.environ.get('ASAN_OPTIONS', '')}:{option}"


def prepare_search_for_leaks():
    """The leak sanitizer needs a right that the others do not: where it is missing the test runs without it."""
    # GCC 12's takes a thread's memory of a library that was opened late, where its address ends in 0x010, for one of an old
    # glibc, reads a size there that is none, and crashes when it looks for leaks in it.
    add_asan_option("intercept_tls_get_addr=0")
    for lack in lacks_of(["ptrace"]):
        if os.environ.get("ESPALIER_REQUIRE") == "all":
            sys.exit(f"ESPALIER_REQUIRE=all, and leaks cannot be looked for: {lack}")
        print(f"leaks are not looked for: {lack}")
        add_asan_option("detect_leaks=0")


def record(line):
    if "ESPALIER_RECORD" in os.environ:
        with open(os.environ["ESPALIER_RECORD"], "a") as file:
            file.write(json.dumps(line) + "\n")


def main(test, build, *command):
    suite = os.environ.get("ESPALIER_SUITE", "all")
    tests = table.load()
    rows = [row for row in tests.rows if (row.test, row.build) == (test, build)]
    line = {"test": test, "build": build}
    # Also a test that the table does not have runs: that it must be there is told where the suite is put together.
    lacks = lacks_of(sorted({need for row in rows for need in row.needs}))
    if lacks and os.environ.get("ESPALIER_REQUIRE") != "all":
        print("\n".join(["not run: this machine lacks what the test needs", *lacks]))
        record(line | {"not_run": lacks})
        return NOT_RUN
    if lacks:
        print("\n".join(["ESPALIER_REQUIRE=all, and this machine lacks what the test needs", *lacks]))
        record(line | {"code": 1, "seconds": 0, "clock_s": 0})
        return 1
    if build == "asan":
        prepare_search_for_leaks()
    command = list(command)
    if suite != "all":
        command = chosen(command, tests.standard_cases(test, build), suite == "rest")
    began = time.monotonic()
    code = run(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    record(line | {"code": code, "seconds": round(used.ru_utime + used.ru_stime, 2),
                   "clock_s": round(time.monotonic() - began, 2)})
    return 1 if code == NOT_RUN else code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
