import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import complaints  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402

TABLE = """budget 100
loop_s 0.5
build standard ci 900
a ci standard 10 - main
b ci standard 10 namespaces other hosts
c ci standard 10 - fails
a ci 1 5 - its other cases
d ci 2 5 - more
lint 3 /tuner/
build 3 linter 5
"""
JUNIT = """<testsuite>
<testcase name="a" status="run"><system-out>ran\nnot tested: A.ipv6: no socket\n</system-out></testcase>
<testcase name="b" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="c" status="fail"/>
</testsuite>"""
LOG = """what CTest has printed
1/2 Test #7: c .....***Failed   2.00 sec
[ RUN      ] C.Adds
sums.cc:12: Failure
Expected equality of these values:
  2

  3
and no more of it
[  FAILED  ] C.Adds (1 ms)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] C.Adds
FAIL: test_minus (sums.Minus.test_minus)
Traceback (most recent call last):
  File "sums.py", line 3, in test_minus
AssertionError: 2 != 3
SUMMARY: ThreadSanitizer: data race sums.cc:40 in Sum
"""
COMPLAINTS = ["1/2 Test #7: c .....***Failed   2.00 sec", "sums.cc:12: Failure", "Expected equality of these values:", "2", "3",
              "[  FAILED  ] C.Adds (1 ms)", "[  FAILED  ] 1 test, listed below:", "[  FAILED  ] C.Adds",
              "FAIL: test_minus (sums.Minus.test_minus)", "AssertionError: 2 != 3",
              "SUMMARY: ThreadSanitizer: data race sums.cc:40 in Sum"]
RECORD = [{"test": "a", "build": "ci", "code": 0, "seconds": 31.0, "clock_s": 40.0},
          {"test": "b", "build": "ci", "not_run": ["namespaces: not permitted (root)"]},
          {"test": "c", "build": "ci", "code": 1, "seconds": 2.0, "clock_s": 3.0}]


class Run(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-run-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.table = table.parse(TABLE)
        self.session = run.Session(run.parsed([]), self.table)
        self.printed = io.StringIO()

    def quietly(self, call, *arguments):
        with contextlib.redirect_stdout(self.printed):
            return call(*arguments)

    def taken_up(self, names=("a", "b", "c")):
        (self.dir / "log").write_text(LOG)
        (self.dir / "junit").write_text(JUNIT)
        (self.dir / "record").write_text("".join(json.dumps(line) + "\n" for line in RECORD))
        with unittest.mock.patch.object(run, "ROOT", self.dir):
            return self.quietly(self.session.take_up, "ci", "standard", names, self.dir / "log", self.dir / "record", self.dir / "junit")

    def test_outcomes_are_counted_and_those_not_run_have_not_failed(self):
        outcomes = self.taken_up()
        self.assertEqual([outcome.status for outcome in outcomes], ["passed", "not run", "failed"])
        self.assertEqual((self.session.passed, self.session.failed), (1, 1))
        self.assertIn("ci: c failed", self.session.problems[0])
        self.assertEqual(self.session.problems[0].split("\n  ")[1:], COMPLAINTS)
        self.assertIn("what CTest has printed", self.printed.getvalue())

    def test_no_more_is_said_of_a_failure_than_fits_an_end(self):
        said = complaints.of_log("".join(f"FAIL: test_{i}{'x' * 300}\n" for i in range(complaints.MOST_LINES + 3)))
        self.assertEqual((len(said), said[-1]), (complaints.MOST_LINES + 1, "and 3 lines more"))
        self.assertEqual(len(said[0]), complaints.MOST_CHARACTERS)

    def test_a_test_of_which_nothing_is_known_has_failed(self):
        [outcome] = self.taken_up(["x"])
        self.assertEqual(outcome.status, "failed")

    def test_the_summary_names_what_was_not_run_and_what_it_cost(self):
        self.taken_up()
        self.assertEqual(self.quietly(self.session.summary, 0.5), 1)
        told = self.printed.getvalue()
        self.assertIn("not run: b: namespaces: not permitted (root)", told)
        self.assertIn("not run, a case of a (ci): A.ipv6: no socket", told)
        self.assertIn("processor seconds: tests 33", told)
        self.assertIn("a (ci) took 31 processor seconds at the speed of tests/suite/table.txt, which says 10", told)
        self.assertTrue(told.endswith("1 passed, 1 failed\n"))

    def test_seconds_compare_at_the_speed_of_the_table(self):
        self.taken_up()
        self.quietly(self.session.summary, 1.5)  # a third of that speed
        self.assertNotIn("which says", self.printed.getvalue())

    def test_what_a_part_has_passed_is_not_taken_for_the_standard_cases(self):
        for suite, remembered in (("standard", {"ci a": "digest"}), ("rest", {}), ("all", {"ci a": "digest"})):
            self.session.outcomes = [run.Outcome("a", "ci", suite, "passed", 1, 1, [])]
            digests = unittest.mock.Mock(**{"of.return_value": "digest"})
            with unittest.mock.patch.object(run, "GREEN", self.dir / f"green-{suite}"), \
                    unittest.mock.patch.object(run.uses, "Digests", return_value=digests), \
                    unittest.mock.patch.object(run.uses, "registered", return_value={"a": None}):
                run.remember_green(self.session)
                self.assertEqual(run.read_green(), remembered, suite)

    def test_the_commit_chooses_the_part(self):
        for commit, part in (("0000000000", 1), ("0000000001", 2), ("0000000002+", 3), ("0000000003", 1), ("none", 1)):
            with unittest.mock.patch.object(run.repeats, "commit", lambda commit=commit: commit):
                self.assertEqual(run.part_of_commit(self.table), part, commit)

    def test_rows_of_each_suite(self):
        rows = lambda *options: [(row.test, row.part) for row in run.rows_of(run.parsed(options), self.table)]
        self.assertEqual(rows(), [("a", 0), ("b", 0), ("c", 0)])
        self.assertEqual(rows("--part", "2"), [("d", 2)])
        self.assertEqual(len(rows("--thorough")), 5)
        with self.assertRaises(SystemExit):
            self.quietly(rows, "--part", "9")
        self.assertIn("--part 9: the thorough suite has the parts 1, 2, 3", self.printed.getvalue())

    def test_tests_are_selected_by_name_and_once(self):
        session = run.Session(run.parsed(["--filter", "^[ad]$"]), self.table)
        self.assertEqual(session.selected(self.table.rows), {"ci": ["a", "d"]})


if __name__ == "__main__":
    unittest.main()
