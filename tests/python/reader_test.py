"""Commands whose reader leaves before their end, as `| head` does."""
import os
import signal
import subprocess
import sys
import unittest

MANY_LINES = """
import sys
from espalier._reader import reader_may_leave
with reader_may_leave():
    for line in range(100_000):
        print(line)
    sys.exit(3)
"""
ONE_LINE = MANY_LINES.replace("100_000", "1")
OF_A_SOCKET = """
from espalier._reader import reader_may_leave
with reader_may_leave():
    raise BrokenPipeError("of a socket")
"""
# The program in place of the wheel's would say whether the signal has ended it.
INSTALLED = """
import pathlib, sys
from espalier import _tuner
_tuner.PROGRAM = pathlib.Path("/bin/sh")
sys.argv = ["tuner", "-c", "kill -PIPE $$; exit 4"]
_tuner.main()
"""


def run(program, *, unread=False):
    """The exit code and standard error."""
    reads, writes = os.pipe()
    os.close(reads)
    with open(writes, "wb") as pipe:
        done = subprocess.run([sys.executable, "-c", program], stdout=pipe if unread else subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=dict(os.environ, PYTHONUNBUFFERED=""))
    return done.returncode, done.stderr


class ReaderThatLeaves(unittest.TestCase):
    def test_ends_the_command_in_silence(self):
        self.assertEqual(run(MANY_LINES, unread=True), (141, ""))
        self.assertEqual(run(ONE_LINE, unread=True), (141, ""))

    def test_that_stays_changes_nothing(self):
        self.assertEqual(run(MANY_LINES), (3, ""))
        code, told = run(OF_A_SOCKET)
        self.assertEqual(code, 1)
        self.assertIn("BrokenPipeError: of a socket", told)

    def test_ends_the_installed_tuner_as_other_programs(self):
        self.assertEqual(run(INSTALLED), (-signal.SIGPIPE, ""))


if __name__ == "__main__":
    unittest.main()
