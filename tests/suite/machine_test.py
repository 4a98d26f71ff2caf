import os
import pathlib
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import machine  # noqa: E402


class Machine(unittest.TestCase):
    def setUp(self):
        machine._in_the_way.cache_clear()
        self.addCleanup(machine._in_the_way.cache_clear)

    def test_what_is_missing_has_a_reason_and_a_remedy(self):
        with unittest.mock.patch.object(machine.shutil, "which", return_value=None):
            self.assertEqual(machine.missing(["browser", "slurm", "cores"]).keys() - {"cores"}, {"browser", "slurm"})
            self.assertEqual(machine.missing(["browser"])["browser"].reason, "there is no chromium")
            self.assertIn("scripts/setup.sh --tests", machine.missing(["browser"])["browser"].remedy)

    def test_nothing_is_asked_for_nothing(self):
        with unittest.mock.patch.dict(machine.CAPABILITIES, clear=True):
            self.assertEqual(machine.missing([]), {})

    def test_commands_that_fail_tell_it_in_their_own_words(self):
        self.assertIsNone(machine._run("true"))
        self.assertEqual(machine._run("sh", "-c", "echo first >&2; echo not permitted >&2; exit 1"), "not permitted")
        self.assertEqual(machine._run("sh", "-c", "exit 3"), "sh ended with 3")
        self.assertEqual(machine._run("/does/not/exist"), "/does/not/exist: No such file or directory")

    def test_without_rights_namespaces_are_missing(self):
        refused = ["sh", "-c", "echo unshare: unshare failed: Operation not permitted >&2; exit 1"]
        with unittest.mock.patch.object(machine, "unshared", lambda *_: refused):
            lacks = machine.missing(["namespaces", "tun", "cores"])
        self.assertEqual(lacks["namespaces"].reason, "unshare: unshare failed: Operation not permitted")
        self.assertIn("SYS_ADMIN", lacks["namespaces"].remedy)
        self.assertIn("/dev/net/tun", lacks["tun"].remedy)

    def test_trials_leave_nothing_behind(self):
        def children():
            return pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        before = children()
        machine.missing(["namespaces", "ipv6", "ptrace", "shared_memory", "cores"])
        self.assertEqual(children(), before)


if __name__ == "__main__":
    unittest.main()
