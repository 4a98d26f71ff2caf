import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import launch  # noqa: E402
import table  # noqa: E402

CASES = """
import unittest

class First(unittest.TestCase):
    def test_a(self): print("ran First.test_a")
    def test_b(self): print("ran First.test_b")

class Second(First):
    pass

if __name__ == "__main__":
    unittest.main()
"""


class Launch(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-launch-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def put_table(self, text):
        for name in ("launch.py", "table.py", "machine.py", "cases.py"):
            shutil.copy(HERE / name, self.dir)
        (self.dir / "table.txt").write_text(text)

    def launch(self, *command, table_text="", build="ci", **environment):
        """As CTest does it, with a table of the test's own."""
        self.put_table(table_text)
        env = {name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")}
        self.record = self.dir / "record"
        self.record.unlink(missing_ok=True)
        return subprocess.run([sys.executable, "-B", self.dir / "launch.py", "mine", build, *map(str, command)], text=True,
                              capture_output=True, env=env | {"ESPALIER_RECORD": str(self.record)} | environment)

    def recorded(self):
        return json.loads(self.record.read_text())

    def python_cases(self, suite, cases="    First.test_a\n    Second\n"):
        program = self.dir / "program.py"
        program.write_text(CASES)
        rows = f"mine ci standard 1 - main\n{cases}mine ci 1 1 - others\n"
        done = self.launch(sys.executable, program, table_text=rows, ESPALIER_SUITE=suite)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(line for line in done.stdout.splitlines() if line.startswith("ran")), done.stderr

    def test_standard_suite_runs_its_cases_and_a_part_the_others(self):
        self.assertEqual(len(self.python_cases("all")[0]), 4)
        ran, told = self.python_cases("standard")
        self.assertEqual(ran, ["ran First.test_a", "ran First.test_a", "ran First.test_b"])
        self.assertIn("Ran 3 tests", told)
        self.assertEqual(self.python_cases("rest")[0], ["ran First.test_b"])
        ran, told = self.python_cases("standard", "    -First.test_b\n")
        self.assertIn("Ran 3 tests", told)
        self.assertIn("Ran 1 test ", self.python_cases("rest", "    -First.test_b\n")[1])

    def test_a_case_that_there_is_not_is_named(self):
        program = self.dir / "program.py"
        program.write_text(CASES)
        done = self.launch(sys.executable, program, table_text="mine ci standard 1 - main\n    First.test_c\n",
                           ESPALIER_SUITE="standard")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('"First.test_c" is no case of', done.stderr)

    def test_cases_of_googletest(self):
        self.assertEqual(launch.chosen(["test_x"], ["A.b", "C.*"], False), ["test_x", "--gtest_filter=A.b:C.*"])
        self.assertEqual(launch.chosen(["test_x"], ["A.b", "C.*"], True), ["test_x", "--gtest_filter=*-A.b:C.*"])
        self.assertEqual(launch.chosen(["test_x", "--gtest_filter=-D.e"], ["A.b"], True), ["test_x", "--gtest_filter=-D.e:A.b"])
        self.assertEqual(launch.chosen(["test_x", "--gtest_filter=D.*"], ["D.e"], True), ["test_x", "--gtest_filter=D.*-D.e"])
        self.assertEqual(launch.chosen(["test_x"], ["-A.b", "-C.*"], False), ["test_x", "--gtest_filter=*-A.b:C.*"])
        self.assertEqual(launch.chosen(["test_x"], ["-A.b", "-C.*"], True), ["test_x", "--gtest_filter=A.b:C.*"])
        self.assertEqual(launch.chosen(["test_x"], [], True), ["test_x"])

    def test_processor_time_of_processes_that_outlive_their_parent_counts(self):
        program = self.dir / "leaves.py"
        # The grandchild is nobody's child when it has used its time, and the command ends after it.
        program.write_text(f"""
import os, time
gone = {str(self.dir / "gone")!r}
if os.fork() == 0:
    if os.fork() != 0:
        os._exit(0)
    end = time.process_time() + 0.5
    while time.process_time() < end: pass
    open(gone, "w").write(str(os.getpid()))
    os._exit(0)
os.wait()
while not (os.path.exists(gone) and (pid := open(gone).read())): time.sleep(0.02)
while os.path.exists(f"/proc/{{pid}}"): time.sleep(0.02)
""")
        self.assertEqual(self.launch(sys.executable, program).returncode, 0)
        self.assertGreaterEqual(self.recorded()["seconds"], 0.5)

    def test_exit_status_is_that_of_the_command(self):
        self.assertEqual(self.launch("sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(self.recorded()["code"], 3)
        self.assertEqual(self.launch("sh", "-c", "kill -9 $$").returncode, 128 + 9)
        self.assertEqual(self.launch("sh", "-c", "exit 77").returncode, 1, "only a lack of the machine is no failure")
        self.assertEqual(self.launch(self.dir / "nothing").returncode, launch.FAILED_TO_START)

    def test_sanitizers_are_told_beside_what_they_were_told_already(self):
        shown = 'import os; print(os.environ["ASAN_OPTIONS"])'
        lacks = json.dumps({"ptrace": ["it is not allowed", "allow it"]})
        done = self.launch(sys.executable, "-c", shown, build="asan", ESPALIER_LACKS="{}", ASAN_OPTIONS="verbosity=0")
        self.assertEqual(done.stdout, "verbosity=0:intercept_tls_get_addr=0\n")
        done = self.launch(sys.executable, "-c", shown, build="asan", ESPALIER_LACKS=lacks)
        self.assertIn("leaks are not looked for: ptrace", done.stdout)
        self.assertTrue(done.stdout.endswith(":intercept_tls_get_addr=0:detect_leaks=0\n"), done.stdout)

    def test_the_command_ends_with_what_runs_it(self):
        self.put_table("")
        launched = subprocess.Popen([sys.executable, "-B", self.dir / "launch.py", "mine", "ci", "sh", "-c",
                                     "echo there; exec sleep 600"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(launched.kill)
        self.assertEqual(launched.stdout.readline(), "there\n")
        launched.kill()
        # The pipe ends with the last process that has it.
        self.assertEqual(launched.communicate(timeout=60)[0], "")

    def test_what_the_machine_lacks_is_told_and_nothing_is_run(self):
        lacking = ("import dataclasses\n@dataclasses.dataclass\nclass Missing:\n    reason: str\n    remedy: str\n"
                   "def missing(names):\n    return {n: Missing('not permitted', 'more rights') for n in names}\n")
        rows = "mine ci standard 1 namespaces main\n"

        def launched(**environment):
            self.put_table(rows)
            (self.dir / "machine.py").write_text(lacking)
            env = {name: value for name, value in os.environ.items() if not name.startswith("ESPALIER_")}
            return subprocess.run([sys.executable, "-B", self.dir / "launch.py", "mine", "ci", "echo", "it ran"], text=True,
                                  capture_output=True, env=env | environment)
        done = launched()
        self.assertEqual(done.returncode, launch.NOT_RUN)
        self.assertIn("namespaces: not permitted (more rights)", done.stdout)
        self.assertNotIn("it ran", done.stdout)
        self.assertEqual(launched(ESPALIER_REQUIRE="all").returncode, 1)
        # Who runs many tests has asked the machine before.
        self.assertEqual(launched(ESPALIER_LACKS="{}").returncode, 0)
        told = launched(ESPALIER_LACKS=json.dumps({"namespaces": ["no rights", "root"]}))
        self.assertEqual(told.returncode, launch.NOT_RUN)
        self.assertIn("namespaces: no rights (root)", told.stdout)


if __name__ == "__main__":
    unittest.main()
