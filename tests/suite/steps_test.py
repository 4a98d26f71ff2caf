"""What scripts/steps.sh shares: room on the disk before anything is installed or built, and what is tried again."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Programs that stand before the machine's own. Each says in `calls` that it was called.
PROGRAMS = {
    "df": 'echo "df ${@: -1}" >>"$CALLS"; printf "Avail\\n%s\\n" "$FREE_MB"',
    "cmake": 'echo cmake >>"$CALLS"',
    "sleep": 'echo sleep >>"$CALLS"',
    "nvcc": "exit 0",
    "sudo": 'exec "$@"',
    "dpkg-query": "exit 0",  # nothing is installed
    "apt-get": """echo "apt-get $*" >>"$CALLS"; case " $* " in *" --assume-no "*)
        printf 'Need to get 1,200 kB/81.0 MB of archives.\\nAfter this operation, 1,464 MB of additional disk space will be used.\\n'
        exit 1 ;; esac""",
}
PIP = """#!/bin/bash
echo "pip $TMPDIR $*" >>"$CALLS"
mkdir -p "$TMPDIR/pip-unpack-1"
exit ${PIP_ENDS:-0}
"""


class Steps(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="espalier-steps-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.calls = self.dir / "calls"
        self.calls.touch()
        shutil.copytree(ROOT / "scripts", self.dir / "tree/scripts")
        for folder in ("tests/benchmarks/peers", "tests/python/integrations", "tests/python/ray"):
            shutil.copytree(ROOT / folder, self.dir / "tree" / folder)
        for name, text in PROGRAMS.items():
            self.program(self.dir / "bin" / name, f"#!/bin/bash\n{text}\n")

    def program(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_bash(self, *words, free_mb=10, **variables):
        environment = {"PATH": f"{self.dir / 'bin'}:/usr/bin:/bin", "HOME": str(self.dir / "home"), "CALLS": str(self.calls),
                       "FREE_MB": str(free_mb), **variables}
        return subprocess.run(["bash", *words], cwd=self.dir / "tree", env=environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def steps(self, commands, **keys):
        return self.run_bash("-c", f"set -euo pipefail; source scripts/steps.sh; {commands}", **keys)

    def test_what_has_no_room_is_refused_with_all_that_one_needs_to_know(self):
        done = self.steps('need_space "a thing" .deps/made/later 101 "ESPALIER_X=off avoids it."; echo went on', free_mb=100)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.splitlines(), [
            "bash: error: a thing needs 101 MB in .deps/made/later, and 100 MB are free there", "  ESPALIER_X=off avoids it.",
            "  Make room there, then run this again."])
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.calls.read_text(), "df .\n", "the nearest folder that there is was asked about")
        self.assertEqual(self.steps('need_space "a thing" . 100; echo went on', free_mb=100).stdout, "went on\n")

    def test_each_script_that_installs_asks_before_it_does(self):
        self.program(self.dir / "tree/.deps/venv/bin/python3", "#!/bin/sh\n")
        self.program(self.dir / "tree/.deps/venv/bin/pip", PIP)
        scripts = [str(path.relative_to(self.dir / "tree")) for pattern in ("scripts/setup*.sh", "tests/benchmarks/peers/setup*.sh")
                   for path in sorted((self.dir / "tree").glob(pattern))]
        self.assertGreater(len(scripts), 14)
        for script in scripts:
            with self.subTest(script):
                self.calls.write_text("")
                done = self.run_bash(script, *(["2.15.0"] if script.endswith("torch.sh") else []))
                self.assertEqual(done.returncode, 1, done)
                self.assertRegex(done.stderr, r"error: .* needs [0-9]+ MB in \S+, and 10 MB are free there\n")
                self.assertNotIn("pip ", self.calls.read_text())
                self.assertNotRegex(self.calls.read_text(), "apt-get install (?!--assume-no)")

    def test_torch_with_cuda_is_refused_with_what_avoids_it(self):
        (self.dir / "bin/dpkg-query").write_text("""#!/bin/bash
for package in "$@"; do echo "installed $package"; done
""")
        done = self.run_bash("scripts/setup.sh", free_mb=2700)
        self.assertIn("error: .deps/venv needs 8000 MB in .deps, and 2700 MB are free there\n", done.stderr)
        self.assertIn("ESPALIER_CUDA=off installs the set without CUDA instead, of 1500 MB.\n", done.stderr)
        done = self.run_bash("scripts/setup.sh", free_mb=2000, ESPALIER_CUDA="off")
        self.assertIn("error: .deps/venv needs 2400 MB in .deps", done.stderr)
        self.assertNotIn("ESPALIER_CUDA", done.stderr)

    def test_packages_are_counted_as_apt_says_and_nothing_is_removed_before_there_is_room(self):
        self.assertIn("a-package needs 1466 MB in /usr, and 1465 MB", self.steps("need_space_for_packages apt-get a-package",
                                                                               free_mb=1465).stderr)
        (self.dir / "tree/.deps/nni-3.0").mkdir(parents=True)
        self.assertRegex(self.steps("make_venv .deps/nni-3.0 nni").stderr, r"\.deps/nni-3\.0 needs 105[56] MB in \.deps")
        self.assertTrue((self.dir / "tree/.deps/nni-3.0").exists())

    def test_builds_and_the_suite_ask_before_they_begin(self):
        self.assertIn("a build of release needs 600 MB in build", self.steps("build_preset release tuner").stderr)
        for script, what in (("scripts/test.sh", "what tests are built and run with"),
                             ("scripts/release.sh", "each torch of the check in its turn")):
            self.assertRegex(self.run_bash(script).stderr, rf"error: {what} needs [0-9]+ MB in \S+, and 10 MB are free there")
        self.assertNotIn("cmake", self.calls.read_text())
        whole, part = (int(self.run_bash("scripts/test.sh", *options).stderr.split(" MB in ")[0].split()[-1])
                       for options in ((), ("--filter", "x")))
        self.assertEqual(whole - part, 1300 + 4600, "those that are named build little")

    def test_what_pip_unpacks_is_beside_what_it_installs_and_is_not_left(self):
        self.program(self.dir / "tree/.deps/made/venv/bin/pip", PIP)
        left = self.dir / "tree/.deps/thing-unpacked"
        for code in (0, 7):
            (left / "pip-unpack-0").mkdir(parents=True)  # of one that was killed
            done = self.steps("lock_deps thing; pip_of .deps/made/venv install torch", PIP_ENDS=str(code))
            self.assertEqual(done.returncode, code, done)
            self.assertFalse(left.exists())
        self.assertRegex(self.calls.read_text(), rf"(?m)^pip {left} install torch .*--no-cache-dir$")

    def test_a_full_disk_is_not_tried_again_and_a_network_is(self):
        for words in ("OSError: [Errno 28] No space left on device", "E: You don't have enough free space in /var/cache/apt/archives/."):
            self.program(self.dir / "bin/installs", f'#!/bin/bash\necho installs >>"$CALLS"\necho "{words}" >&2\nexit 1\n')
            self.calls.write_text("")
            done = self.steps("with_retries installs; echo went on")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(f"{words}\nbash: error: the disk is full, as said above: 10 MB are free in ", done.stderr)
            self.assertEqual(self.calls.read_text().count("installs"), 1)
        self.program(self.dir / "bin/installs", '#!/bin/bash\necho installs >>"$CALLS"\necho a line\necho reset >&2\n'
                                                '(($(grep -c installs "$CALLS") == 3))\n')
        self.calls.write_text("")
        done = self.steps("with_retries installs && echo went on")
        self.assertEqual(done.stdout.count("a line\n"), 3)
        self.assertIn("failed (try 2 of 3), trying again in 10 s: installs\n", done.stdout)
        self.assertTrue(done.stdout.endswith("went on\n"))
        self.assertEqual(done.stderr, "reset\n" * 3)


if __name__ == "__main__":
    unittest.main()
