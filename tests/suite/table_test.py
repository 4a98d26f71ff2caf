import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import machine  # noqa: E402
import table  # noqa: E402

TEXT = """# a comment
budget 100
loop_s 0.65
build standard ci 200
build standard asan 100
test_core asan standard 30 - decides
e2e_service ci standard 40 namespaces,ipv6 its main way
    Service.test_main
    Loss*
e2e_service ci 1 20 - the others
test_core tsan 2 10 - threads
"""


class Table(unittest.TestCase):
    def faults_of(self, text):
        return "\n".join(table.faults(table.parse(text)))

    def test_rows_and_their_cases_are_read(self):
        read = table.parse(TEXT)
        self.assertEqual((read.budget, read.loop_s, read.parts()), (100, 0.65, [1, 2]))
        self.assertEqual(read.standard_cases("e2e_service", "ci"), ["Service.test_main", "Loss*"])
        self.assertEqual(read.of(table.STANDARD)[1].needs, ["namespaces", "ipv6"])
        self.assertEqual(read.seconds(table.STANDARD), 370)
        self.assertEqual(self.faults_of(TEXT), "")

    def test_lines_that_cannot_be_are_named(self):
        for line, told in (("test_core debug standard 1 - why", 'build "debug": want one of ci, asan, tsan'),
                           ("test_core ci often 1 - why", 'suite "often"'), ("test_core ci 0 1 - why", 'suite "0"'),
                           ("test_core ci 1 much - why", 'seconds "much"'), ("test_core ci 1", "want TEST BUILD SUITE"),
                           ("    Case.test_x", 'case "Case.test_x" stands below no test')):
            with self.assertRaises(table.TableError) as raised:
                table.parse("# first\n" + line)
            self.assertIn(told, str(raised.exception))
            self.assertIn("table.txt:2", str(raised.exception))

    def test_standard_suite_keeps_to_its_budget(self):
        self.assertIn("take 70 processor seconds, more than the budget of 69", self.faults_of(TEXT.replace("budget 100", "budget 69")))

    def test_parts_are_an_eighth_at_most_with_their_builds(self):
        self.assertIn("part 2 takes 60 processor seconds", self.faults_of(TEXT + "build 2 tsan 50\n"))

    def test_parts_need_one_build_at_most(self):
        self.assertIn("part 2 needs more than one more build", self.faults_of(TEXT + "build 2 tsan 1\nbuild 2 asan 1\n"))
        self.assertIn("part 2 has tests of several builds: ci, tsan", self.faults_of(TEXT + "test_api ci 2 1 - why\n"))

    def test_cases_that_are_left_out_are_in_a_part(self):
        self.assertIn("runs some of its cases, and no part the others", self.faults_of(TEXT.replace("e2e_service ci 1", "e2e_other ci 1")))
        self.assertIn("a part has a row of it, too", self.faults_of(TEXT + "test_core asan 1 1 - again\n"))
        self.assertIn("has two rows of the thorough suite", self.faults_of(TEXT + "test_core tsan 1 1 - again\n"))
        self.assertIn("part 2 names cases", self.faults_of(TEXT + "test_api tsan 2 1 - why\n    A.b\n"))
        self.assertIn("want one or the other", self.faults_of(TEXT.replace("    Loss*", "    -Loss*")))

    def test_cases_are_those_that_run_or_with_a_dash_those_that_do_not(self):
        self.assertEqual(table.listed(["A.b", "C.*"]), (["A.b", "C.*"], True))
        self.assertEqual(table.listed(["-A.b", "-C.*"]), (["A.b", "C.*"], False))

    def test_each_test_of_a_build_has_a_row(self):
        registered = {"ci": ["e2e_service", "e2e_new"], "asan": []}
        self.assertEqual(table.unlisted(table.parse(TEXT), registered),
                         ["e2e_new is a test of ci and has no row in tests/suite/table.txt",
                          "tests/suite/table.txt has test_core, and asan no such test"])

    def test_classes_and_patterns_name_cases(self):
        self.assertTrue(table.matches("Service", "Service.test_main"))
        self.assertTrue(table.matches("*.test_main", "Service.test_main"))
        self.assertFalse(table.matches("Serv", "Service.test_main"))


class OurTable(unittest.TestCase):
    def test_it_has_no_faults(self):
        self.assertEqual(table.faults(table.load()), [])

    def test_what_tests_need_can_be_asked_of_the_machine(self):
        for row in table.load().rows:
            for need in row.needs:
                self.assertIn(need, machine.CAPABILITIES, row.test)


class ThreadSanitizer(unittest.TestCase):
    def test_what_is_suppressed_is_one_function_of_a_library_with_its_reason(self):
        before = ""
        for line in (pathlib.Path(__file__).parent / "thread_sanitizer.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                self.assertRegex(line, r"^race:[\w:~]+$")
                self.assertNotIn("espalier", line)
                self.assertTrue(before.startswith("# "), f"{line}: needs its reason in the line before")
            before = line


if __name__ == "__main__":
    unittest.main()
