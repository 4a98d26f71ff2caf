"""espalier.torch.local_first: one process of a machine at a time."""
import os
import pathlib
import select
import signal
import subprocess
import sys
import unittest

import espalier.torch as adl

INTERRUPTED = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import espalier.torch as adl
from interrupted import interrupt_when_waiting
interrupt_when_waiting()
with adl.local_first(sys.argv[1]):
    print("in")
"""


class LocalFirst(unittest.TestCase):
    def test_one_process_of_a_machine_at_a_time(self):
        name = f"test {os.getpid()}"
        program = ("import sys, espalier.torch as adl\n"
                   "for name in sys.argv[1:]:\n"
                   "    with adl.local_first(name): print(name, flush=True)\n")
        with adl.local_first(name):
            other = subprocess.Popen([sys.executable, "-c", program, name + " b", name], stdout=subprocess.PIPE, text=True)
            self.assertEqual(other.stdout.readline(), f"{name} b\n", "another name is another lock")
            self.assertEqual(select.select([other.stdout], [], [], 0.5)[0], [], "it waits")
        self.assertEqual(other.communicate(timeout=60)[0], f"{name}\n")
        self.assertEqual(other.returncode, 0)

    def test_who_was_forked_within_holds_nobody_up(self):
        name = f"forked {os.getpid()}"
        program = f"import espalier.torch as adl\nwith adl.local_first({name!r}): print('in', flush=True)\n"
        read, write = os.pipe()
        with adl.local_first(name):
            child = os.fork()
            if child == 0:
                os.close(write)
                os.read(read, 1)  # until its parent has gone on
                os._exit(0)
        os.close(read)
        try:
            other = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=300)
            self.assertEqual((other.returncode, other.stdout), (0, "in\n"))
            self.assertEqual(os.waitpid(child, os.WNOHANG)[0], 0, "it still lives")
        finally:
            os.close(write)
            os.waitpid(child, 0)

    def test_the_wait_is_interrupted(self):
        name = f"interrupted {os.getpid()}"
        with adl.local_first(name):
            done = subprocess.run([sys.executable, "-c", INTERRUPTED, name], text=True, capture_output=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (-signal.SIGINT, ""), done.stderr)
        self.assertRegex(done.stderr, "(?s)in local_first\n.*KeyboardInterrupt")


if __name__ == "__main__":
    unittest.main()
