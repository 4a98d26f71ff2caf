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
    "sudo": '[[ $1 != -n ]] || shift; exec "$@"',
    "dpkg-query": "exit 0",  # nothing is installed
    "apt-get": """echo "apt-get $*" >>"$CALLS"; case " $* " in *" --print-uris "*)
        printf 'Need to get 1,200 kB/81.0 MB of archives.\\nAfter this operation, 1,464 MB of additional disk space will be used.\\n'
        ;; esac""",
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

    def all_packages_are_there(self):
        self.program(self.dir / "bin/dpkg-query", '#!/bin/bash\nfor package in "$@"; do echo "installed $package"; done\n')

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
            "  Make room there, then run this again.", "  ESPALIER_ANY_SPACE=1 goes on with what is free."])
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.calls.read_text(), "df .\n", "the nearest folder that there is was asked about")
        for mb, variables in ((100, {}), (101, {"ESPALIER_ANY_SPACE": "1"})):
            self.assertEqual(self.steps(f'need_space "a thing" . {mb}; echo went on', free_mb=100, **variables).stdout, "went on\n")

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
                self.assertNotRegex(self.calls.read_text(), r"apt-get .*\binstall (?!--print-uris )")

    def test_torch_with_cuda_is_refused_with_what_avoids_it(self):
        self.all_packages_are_there()
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
        (self.dir / "tree/.deps/venv").mkdir()
        self.all_packages_are_there()
        self.assertIn("error: .deps/venv needs ", self.run_bash("scripts/setup.sh").stderr)
        self.assertTrue((self.dir / "tree/.deps/venv").exists())

    def test_peers_are_kept_until_there_is_room_for_all_of_the_new_ones(self):
        kept = self.dir / "tree/.deps/peers/bin/python"
        self.program(kept, "#!/bin/sh\n")
        done = self.run_bash("tests/benchmarks/peers/setup.sh", free_mb=1000)
        self.assertRegex(done.stderr, r"error: \.deps/peers needs (8991|8992) MB in \.deps, and 1000 MB are free there\n")
        self.assertTrue(kept.exists())

    def test_sizes_are_of_what_links_lead_to_and_never_end_a_script(self):
        other = pathlib.Path(tempfile.mkdtemp(prefix="espalier-steps-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, other)
        (other / "file").write_bytes(b"x" * 2500000)
        (self.dir / "tree/.deps").symlink_to(other)
        self.program(self.dir / "bin/du", '#!/bin/bash\n/usr/bin/du "$@"\nexit 1\n')  # as where a file vanishes
        self.assertEqual(self.steps("size_mb .deps; size_mb nothing").stdout, "3\n0\n")
        if other.stat().st_dev == self.dir.stat().st_dev:
            self.skipTest("/dev/shm is no file system of its own here")
        self.assertRegex(self.steps("need_space_for_tests ci").stderr, r"what tests run with needs [0-9]+ MB in \.deps, ")
        self.assertEqual(self.steps("need_space_for_tests ci", free_mb=9900).stderr, "", "neither needs so much alone")
        (self.dir / "tree/build").symlink_to(other)
        self.assertIn(f" MB in {other}, and 9900 MB ", self.steps("need_space_for_tests ci", free_mb=9900).stderr)

    def test_what_is_whole_lacks_nothing_and_what_is_large_leaves_others_their_need(self):
        for folder, stamp in (("nni-3.0", "installed"), ("venv", "espalier-libtorch-set"), ("optuna-5.0.0", "installed")):
            (self.dir / "tree/.deps" / folder).mkdir(parents=True)
            (self.dir / "tree/.deps" / folder / stamp).write_text("cpu torch\n")
        done = self.steps("for row in nni venv venv-cuda 'optuna 2' ray; do missing_in_deps $row; done")
        self.assertEqual(done.stdout.split(), ["0", "0", "4999", "580", "330"], done)
        (self.dir / "tree/build/ci").mkdir(parents=True)
        (self.dir / "tree/build/ci/program").write_bytes(b"x" * 3000000)
        done = self.steps("BUILD_MB[ci]=1; for build in ci asan gpu; do missing_in_build $build; done")
        self.assertEqual(done.stdout.split(), ["0", "4600", "0"], done)

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

    def test_what_a_command_says_is_shown_before_its_end(self):
        self.program(self.dir / "bin/says", """#!/bin/bash
echo first >&2
for ((i = 0; i < 200; ++i)); do [[ ! -e seen ]] || break; /usr/bin/sleep 0.1; done
printf last >&2
[[ -e seen ]]
""")
        with subprocess.Popen(["bash", "-c", "source scripts/steps.sh; NETWORK_TRIES=1; with_retries says"], cwd=self.dir / "tree",
                              env={"PATH": f"{self.dir / 'bin'}:/usr/bin:/bin"}, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as done:
            self.assertEqual(done.stderr.readline(), "first\n")
            (self.dir / "tree/seen").touch()
            self.assertEqual(done.stderr.read(), "last\n")
        self.assertEqual(done.returncode, 0)

    def test_a_daemon_that_keeps_its_output_is_not_waited_for(self):
        self.program(self.dir / "bin/starts", """#!/bin/bash
touch runs
(for ((i = 0; i < 200; ++i)); do [[ -e runs ]] || exit; /usr/bin/sleep 0.1; done; touch ended_by_itself) >/dev/null &
echo started >&2
""")
        done = self.steps("with_retries starts; [[ ! -e ended_by_itself ]] && echo went on; rm runs")
        self.assertEqual((done.stdout, done.stderr), ("went on\n", "started\n"))


if __name__ == "__main__":
    unittest.main()
