import contextlib
import errno
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import machine  # noqa: E402

FILE = pathlib.Path(machine.__file__)
QUICK = ["namespaces", "tun", "ipv6", "ptrace", "shared_memory", "unprivileged_user", "memory_group", "browser", "git_history"]


def told(*before, **environment):
    """What machine.py prints after a command that takes something away, by capability."""
    done = subprocess.run([*before, sys.executable, "-B", FILE], env=os.environ | environment, text=True, capture_output=True)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"it ended with {done.returncode}: {done.stdout}{done.stderr}")
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


class Machine(unittest.TestCase):
    def setUp(self):
        machine._lack.cache_clear()
        self.addCleanup(machine._lack.cache_clear)

    def lack(self, name):
        return machine.missing([name])[name]

    def put_instead(self, name, probe):
        self.enterContext(unittest.mock.patch.dict(machine.CAPABILITIES, {name: (probe, "another machine")}))

    def test_what_is_missing_has_a_reason_and_a_remedy(self):
        with unittest.mock.patch.object(shutil, "which", return_value=None):
            self.assertEqual(self.lack("browser"), machine.Missing("there is no chromium", "scripts/setup.sh --tests installs it"))
            self.assertEqual(self.lack("slurm").reason, "there is no slurmctld")
            self.assertEqual(self.lack("tun").reason, "there is no ip")

    def test_nothing_is_asked_for_nothing(self):
        with unittest.mock.patch.object(machine, "_lack", side_effect=AssertionError("asked")):
            self.assertEqual(machine.missing([]), {})

    def test_an_unknown_capability_is_answered_with_the_known_ones(self):
        with self.assertRaisesRegex(ValueError, 'capability "warp": want one of namespaces, tun, slurm'):
            machine.missing(["warp"])

    def test_each_is_asked_once(self):
        probe = unittest.mock.Mock(return_value="it is not there")
        self.put_instead("ipv6", probe)
        for _ in range(2):
            self.assertEqual(machine.missing(["ipv6"]), {"ipv6": machine.Missing("it is not there", "another machine")})
        probe.assert_called_once_with()

    def test_a_probe_that_fails_is_a_reason(self):
        self.put_instead("ipv6", unittest.mock.Mock(side_effect=RuntimeError("no such thing")))
        self.assertEqual(self.lack("ipv6").reason, "RuntimeError: no such thing")

    def test_a_case_is_left_out_and_fails_where_all_has_to_run(self):
        case = unittest.TestCase()
        self.put_instead("ipv6", lambda: None)
        machine.need(case, "ipv6")
        machine._lack.cache_clear()
        self.put_instead("ipv6", lambda: "it is not there")
        told = re.escape("ipv6: it is not there (another machine)")
        printed = io.StringIO()
        with unittest.mock.patch.dict(os.environ, ESPALIER_REQUIRE=""), contextlib.redirect_stdout(printed), \
                self.assertRaisesRegex(unittest.SkipTest, told):
            machine.need(case, "ipv6")
        self.assertRegex(printed.getvalue(), f"^not tested: .*: {told}\n$")
        with unittest.mock.patch.dict(os.environ, ESPALIER_REQUIRE="all"), self.assertRaisesRegex(AssertionError, told):
            machine.need(case, "ipv6")

    def test_commands_that_fail_tell_it_in_their_own_words(self):
        self.assertIsNone(machine._run("true"))
        self.assertEqual(machine._run("sh", "-c", "echo first >&2; echo mount: not permitted >&2; echo see dmesg >&2; exit 1"),
                         "mount: not permitted")
        self.assertEqual(machine._run("sh", "-c", "echo out of luck; exit 1"), "out of luck")
        self.assertEqual(machine._run("sh", "-c", "exit 3"), "sh ended with 3")
        self.assertEqual(machine._run("/does/not/exist"), "/does/not/exist: No such file or directory")
        with unittest.mock.patch.object(machine, "TRY_S", 0.1):
            self.assertEqual(machine._run("sleep", "60"), "sleep took longer than 0.1 s")

    def test_what_may_not_be_traced_is_told(self):
        libc = unittest.mock.Mock(**{"ptrace.return_value": -1})
        with unittest.mock.patch.object(machine.ctypes, "CDLL", return_value=libc), \
                unittest.mock.patch.object(machine.ctypes, "get_errno", return_value=errno.EPERM):
            self.assertEqual(self.lack("ptrace").reason, "a process may not trace another one of its user: Operation not permitted")

    def without(self, *rights):
        """What machine.py prints where root does not have these rights."""
        if os.geteuid() != 0:
            self.skipTest("only root has rights to give up")
        return told("setpriv", *(f"{kind}=-{right}" for right in rights for kind in ("--bounding-set", "--inh-caps")))

    def test_without_rights_each_tells_its_reason(self):
        lines = self.without("all")
        self.assertEqual(list(lines), list(machine.CAPABILITIES))
        for name in ("namespaces", "tun"):
            self.assertIn("Operation not permitted; what would allow it: root, or", lines[name])
        self.assertIn("--device=/dev/net/tun", lines["tun"])
        self.assertIn("missing: root cannot become user 65534: Operation not permitted", lines["unprivileged_user"])
        self.assertEqual(lines["shared_memory"], "allowed")

    def test_who_may_make_namespaces_may_not_make_a_network(self):
        lines = self.without("net_admin")
        self.assertRegex(lines["namespaces"], "missing: .*(Operation not permitted|Permission denied)")

    def test_programs_that_are_not_installed_are_named(self):
        with tempfile.TemporaryDirectory() as empty:
            lines = told(PATH=empty)
        self.assertIn("missing: there is no chromium", lines["browser"])
        self.assertIn("missing: there is no git", lines["git_history"])

    def test_a_checkout_without_history_says_so(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(machine, "ROOT", pathlib.Path(folder)):
            self.assertIn("not a git repository", self.lack("git_history").reason)

    def test_probes_leave_nothing_behind(self):
        def left():
            mine = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
            mounts = pathlib.Path("/proc/self/mountinfo").read_text()
            return mine, mounts, os.listdir(folder), os.getcwd(), os.listdir("/proc/self/fd")
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, TMPDIR=folder), \
                unittest.mock.patch.object(tempfile, "tempdir", folder):
            before = left()
            machine.missing(QUICK)
            self.assertEqual(left(), before)


if __name__ == "__main__":
    unittest.main()
