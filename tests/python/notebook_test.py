"""espalier.tune where people look: in a notebook and in a terminal. It needs the packages of
scripts/setup-notebook.sh."""
import fcntl
import linecache
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import unittest

import nbclient
import nbformat
from jupyter_client.manager import start_new_kernel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, PATIENCE_S, TunerTest, wait_for  # noqa: E402

import espalier  # noqa: E402
from espalier import _objective, space  # noqa: E402

NOTEBOOK = ROOT / "examples/python_notebook/half_moons.ipynb"
SPACE = {"x": space.uniform(0, 1)}
TERMINAL = """
import sys
{first}
import espalier
from espalier import space
result = espalier.tune([sys.argv[1]], {{"x": space.uniform(0, 1)}}, trials=3, slots=2, sampler="random", metric="loss")
print("RESULT", len(result.trials))
"""
INTERRUPTED = """
import espalier
result = espalier.tune(["{program}"], {{"x": espalier.space.uniform(0, 1)}}, name="mine", trials=4, slots=2,
                       sampler="random", stop_grace_s=1)
print("RESULT", result.state, len(result.trials), result.best_value)
"""


class Shown(TunerTest):
    def setUp(self):
        super().setUp()
        self.be_in_folder()
        os.environ["OMP_NUM_THREADS"] = "1"
        self.program = self.write("trial.sh", '#!/bin/sh\ntuner tell --step 1 --value "$ESPALIER_PARAM_X"\n', 0o755)

    def test_the_notebook_runs(self):
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbformat.validate(notebook)
        self.assertFalse([cell for cell in notebook.cells if cell.get("outputs")], "it is kept without outputs")
        nbclient.NotebookClient(notebook, timeout=LONG_S, startup_timeout=PATIENCE_S, kernel_name="python3",
                                resources={"metadata": {"path": str(self.dir)}}).execute()
        tuned, best, frame, curves = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"][-4:]
        # The table is renewed in its place; what is printed may come behind it, or in two parts, on a busy machine.
        self.assertIn("4 trials", "".join(output.text for output in tuned if output.output_type == "stream"))
        [table] = [output for output in tuned if output.output_type != "stream"]
        self.assertIn("4 of 4 ended: 4 complete", table.data["text/html"])
        self.assertIn('<iframe sandbox="allow-scripts" ', table.data["text/html"])
        self.assertIn("id=&quot;record&quot;", table.data["text/html"].partition(" srcdoc=")[2], "the record is kept in the cell")
        self.assertNotIn("href='http", table.data["text/html"], "nothing answers there any more")
        self.assertEqual(table.data["text/html"].count("<td>complete</td>"), 4)
        self.assertGreater(float(re.match(r"\((0\.\d+),", best[0].data["text/plain"])[1]), 0.8)
        self.assertEqual(frame[0].data["text/html"].count("<tr"), 1 + 4)
        self.assertEqual(curves[0].data["text/html"].count("<tr"), 2 + 8)

    def test_interrupting_the_kernel_returns_what_there_is(self):
        program = self.write("waiting.sh", "#!/bin/sh\ntuner tell --step 1 --value 0.5\nexec sleep 600\n", 0o755)
        manager, client = start_new_kernel(startup_timeout=PATIENCE_S, kernel_name="python3")
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.addCleanup(client.stop_channels)
        asked = client.execute(INTERRUPTED.format(program=program))
        while client.get_iopub_msg(timeout=PATIENCE_S)["msg_type"] != "display_data":
            pass  # until the table is there, from when on the study is followed
        wait_for(lambda: self.reported("mine"), "both trials to report")
        manager.interrupt_kernel()
        while (reply := client.get_shell_msg(timeout=PATIENCE_S))["parent_header"].get("msg_id") != asked:
            pass  # to what was asked while the kernel started
        self.assertEqual(reply["content"]["status"], "ok", reply)
        told = ""
        while "RESULT" not in told:
            message = client.get_iopub_msg(timeout=PATIENCE_S)
            told += message["content"].get("text", "")
        self.assertIn("stopping: trials save what they can", told)
        self.assertIn("RESULT STOPPED 2 0.5", told)

    def reported(self, name):
        try:
            with espalier.Client(directory=self.dir / "espalier-runs" / name) as client:
                return [trial["step"] for trial in client.trials(name, values=False)] == [1, 1]
        except espalier.EspalierError:
            return False

    def test_a_function_that_is_sent_and_a_dataframe(self):
        offset = 5

        def objective(trial):
            trial.report(1, 1.0)
            return trial.get("x", 0.0) + offset

        result = espalier.tune(objective, SPACE, trials=2, slots=2, sampler="random", show=False)
        frame = result.dataframe()
        self.assertEqual(list(frame.columns), ["trial", "state", "x", "step", "final_value", "started_s", "ended_s",
                                               "slot_seconds", "restarts", "reason"])
        self.assertEqual(list(frame.final_value), list(frame.x + 5))
        self.assertEqual(list(result.dataframe(steps=True)["value"]), [1.0, 1.0])
        self.serve(self.dir / "pool.db")
        self.agent(1)
        of_pool = espalier.tune(objective, SPACE, trials=1, sampler="random", show=False, address=self.http)
        self.assertEqual(of_pool.best_value, of_pool.best_parameters["x"] + 5)
        large = os.urandom(200_000)
        with self.assertRaisesRegex(espalier.UsageError, "too many to send"):
            espalier.tune(lambda trial: len(large), SPACE, trials=1, address=self.http)
        lock = threading.Lock()
        with self.assertRaisesRegex(espalier.UsageError, "cannot be sent to another process: it refers to lock, a _thread"):
            espalier.tune(lambda trial: lock, SPACE, trials=1)

    def test_a_function_that_has_changed_is_no_study_that_has_ended(self):
        def tune(objective, **keys):
            return espalier.tune(objective, SPACE, slots=1, sampler="random", name="same", show=False, trials=1, **keys)

        self.assertEqual(tune(lambda trial: 1.0).best_value, 1)
        self.assertEqual(tune(lambda trial: 1.0).best_value, 1)
        sent = (self.dir / "espalier-runs/same/objective.pkl").read_bytes()
        with self.assertRaisesRegex(espalier.UsageError, "was run with another version of this function: fresh=True"):
            tune(lambda trial: 2.0)
        with self.assertRaisesRegex(espalier.UsageError, "max_step"):
            tune(lambda trial: 1.0, max_step=0)
        self.assertEqual((self.dir / "espalier-runs/same/objective.pkl").read_bytes(), sent)
        self.assertEqual(tune(lambda trial: 2.0, fresh=True).best_value, 2)

        def fails(trial):
            raise ValueError("on purpose")

        with self.assertRaisesRegex(espalier.StudyError, "(?s)has failed: .*on purpose"):
            tune(fails, fresh=True)
        with self.assertRaisesRegex(espalier.StudyError, "has failed in an earlier run .fresh=True starts over.: "):
            tune(fails)
        with self.assertRaisesRegex(espalier.UsageError, "was run with another version of this function: fresh=True"):
            tune(lambda trial: 3.0)

    def test_large_functions_are_warned_of(self):
        data = bytes(20_000_000)
        with self.assertWarnsRegex(UserWarning, r"the objective is 20 MB with what it refers to \(data: 20 MB\), which"):
            _objective.pickled(lambda trial: len(data))

    def test_tracebacks_of_a_function_that_is_sent_show_its_lines(self):
        def of_a_file(trial):
            raise ValueError("on purpose")  # shown

        cell = "def of_a_cell(trial):\n    return [trial.number][1]  # shown\n"
        name, namespace = "/nowhere/ipykernel_1/2024.py", {"__name__": "__main__"}
        linecache.cache[name] = len(cell), None, cell.splitlines(True), name
        exec(compile(cell, name, "exec"), namespace)
        for objective, wanted in ((of_a_file, rf'File "{__file__}", line \d+, in of_a_file\n'
                                              r'    raise ValueError\("on purpose"\)  # shown\n.*\nValueError: on purpose'),
                                  (namespace["of_a_cell"], r'File "2024.py", line 2, in of_a_cell\n'
                                                           r"    return \[trial.number\]\[1\]  # shown\n.*\nIndexError: ")):
            with self.subTest(objective), self.assertRaises(espalier.StudyError) as caught:
                espalier.tune(objective, SPACE, trials=1, show=False)
            self.assertRegex(str(caught.exception), r"code 1\nTraceback \(most recent call last\):\n  " + wanted)

    def in_terminal(self, first=""):
        """What a program prints to one of 30 lines with 120 columns."""
        script = self.write("terminal.py", TERMINAL.format(first=first))
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        process = subprocess.Popen([sys.executable, script, self.program], stdin=subprocess.DEVNULL, stdout=theirs,
                                   stderr=theirs, env=dict(os.environ, TERM="xterm"))
        self.processes.append(process)
        os.close(theirs)
        told = b""
        try:
            while part := os.read(ours, 65536):
                told += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        told = told.decode()
        self.assertEqual(process.wait(PATIENCE_S), 0, told)
        self.assertIn("RESULT 3", told)
        return told

    def test_a_terminal_shows_a_table(self):
        told = self.in_terminal()
        self.assertIn("3 of 3 ended: 3 complete; best loss ", told)
        self.assertRegex(told.split("3 of 3 ended")[-1], "(?s)trial.*state.*loss.*x.*complete.*complete.*complete")
        self.assertIn("\x1b[?25h", told)  # the cursor is back

    def test_or_a_bar_where_there_is_no_rich(self):
        told = self.in_terminal("sys.modules['rich'] = None")
        self.assertRegex(told, r"trial: 100%.*3/3 .*best loss")

    def test_or_lines_where_there_is_neither(self):
        told = self.in_terminal("sys.modules['rich'] = sys.modules['tqdm'] = None")
        self.assertRegex(told, r"trial 2 complete loss 0\.\d+  x=0\.\d+")


if __name__ == "__main__":
    unittest.main()
