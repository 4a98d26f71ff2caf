"""Trials with "launch": "ranks": their ranks, which of them is to blame, and that nothing is left of them. No torch."""
import json
import os
import pathlib
import signal
import unittest

from harness import ROOT, RanksTest, TunerTest, is_alive, parent_of, wait_for

CHOICE = {"_type": "choice"}
# Where each rank writes down what it is, and its loader, a process of its group.
BEGIN = """import os, pathlib, signal, subprocess, sys, time
folder, case, trial = pathlib.Path(sys.argv[1]), sys.argv[2], os.environ["ESPALIER_TRIAL_NUMBER"]
rank = int(os.environ["RANK"])
note = lambda name, text: (folder / f"{trial}-{rank}-{name}").open("a").write(f"{text}\\n")
stay = lambda: time.sleep(1000)
"""
PLACES = BEGIN + """
names = ("LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME", "OMP_NUM_THREADS")
note("place", " ".join(os.environ[name] for name in names))
assert "ESPALIER_CONTROL_FD" not in os.environ
print(f"rank {rank} loss=0.{5 + rank}")
"""
# Rank 0 would stay for ever in each case, and does not listen: what it prints is not the reason.
ENDS = BEGIN + """
note("pid", os.getpid())
if rank == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("connection closed by peer", flush=True)
    stay()
while not (folder / f"{trial}-0-pid").exists():
    time.sleep(0.01)
print("loading the data")
if case == "raises":
    raise ValueError("the reason of rank 1")
if case == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""
STAYS = BEGIN + """
def ends(*_):
    note("term", "SIGTERM")
    if case == "heeds":
        sys.exit(0)
signal.signal(signal.SIGTERM, ends)
loader = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
note("pid", os.getpid())
note("pid", loader.pid)
note("runner", os.getppid())
while True:
    time.sleep(0.05)
    note("loader", loader.poll())
"""
REPORTS = BEGIN + """
value = 0.5 if case == "alike" else 0.5 + rank
told = subprocess.run(["tuner", "tell", "--step", "1", "--value", str(value)], text=True, capture_output=True)
note("told", told.returncode)
note("said", told.stderr.strip())
"""
# Both fail by themselves, the one that `case` names a little before the other.
TOGETHER = BEGIN + """
note("runner", os.getppid())
note("pid", os.getpid())
if rank != int(case):
    told = folder / f"{trial}-{case}-pid"
    while not (told.exists() and told.read_text().strip()):
        time.sleep(0.01)
    first = pathlib.Path("/proc") / told.read_text().strip()
    while (first / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.002)
else:
    while not (folder / f"{trial}-go").exists():
        time.sleep(0.01)
os._exit(3 + rank)
"""
# Stands for torch; each process that imports it says so.
TORCH = """import os, types
cuda = types.SimpleNamespace(is_initialized=lambda: False)
with open(os.environ["IMPORTS"], "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
FORKED = BEGIN + """
import torch
note("pid", os.getpid())
note("runner", os.getppid())
note("group", os.getpgid(0))
note("place", " ".join(os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_PORT")))
note("left", sorted(name for name in os.environ if "ZYGOTE" in name))
print(f"rank {rank} speaks")
if case == "fails" and rank == 1:
    sys.exit(3)
if case == "fails":
    stay()
"""
# Stands for an interpreter with torchrun, which starts so many ranks of as many.
LAUNCHER = """#!/bin/sh
[ "$1" = -m ] || exec python3 "$@"
echo $$ > {notes}/launcher
echo the launcher speaks
while [ "$1" != --no-python ]; do shift; done
shift
for rank in {ranks}; do RANK=$rank LOCAL_RANK=$rank WORLD_SIZE={size} "$@" & done
wait
echo it has seen them end >> {notes}/launcher
"""


class Ranks(RanksTest, TunerTest):
    def study_of(self, program, cases, **keys):
        command = ["python3", self.write("ranks.py", program), str(self.notes), "{case}", "{trial}"]
        return self.study(command, **{"launch": "ranks", "slots": 2, "sampler": "grid", "trials": None, "metric": False,
                                      "search_space": {"case": {**CHOICE, "_value": cases}}, **keys})

    def run_study(self, study, slots=2, code=0):
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", slots, code=code)
        record = self.export("--db", self.dir / "run/espalier.db")
        return {json.loads(trial["parameters"][0]["json"]): trial for trial in record["trials"]}

    def test_ranks_know_their_places_and_have_logs_of_their_own(self):
        study = self.study_of(PLACES, ["one", "other"], slots=3, env={"OMP_NUM_THREADS": "1"},
                              metric={"name": "loss", "from_output": "loss=([0-9.]+)"})
        trials = self.run_study(study, slots=6)
        ports = set()
        for trial in trials.values():
            self.assertEqual(trial["state"], "TRIAL_COMPLETE", trial)
            self.assertEqual(trial["value"], 0.5, "rank 0's")
            for rank in range(3):
                local, size, local_size, address, port, interface, _ = self.note(trial["number"], rank, "place")[0].split()
                self.assertEqual((local, size, local_size, address), (str(rank), "3", "3", "127.0.0.1"))
                self.assertEqual(interface, "lo")
                ports.add((trial["number"], port))
            logs = list((self.dir / "run").rglob(f"trial-{trial['number']}/replica-*.rank-*.log"))
            self.assertEqual(sorted(path.read_text() for path in logs), ["rank 1 loss=0.6\n", "rank 2 loss=0.7\n"])
        self.assertEqual(len(ports), 2, "all ranks of a trial have one port")
        self.assertEqual(len({port for _, port in ports}), 2, "and two trials have two")
        for rank, options in ((0, ()), (2, ("--rank", 2))):
            told = self.run_tuner("logs", "e2e", 0, "--db", self.dir / "run/espalier.db", *options).stdout
            self.assertEqual(told, f"rank {rank} loss=0.{5 + rank}\n")

    def test_the_ranks_report_as_one(self):
        trials = self.run_study(self.study_of(REPORTS, ["alike", "unlike"], metric={"name": "loss"}))
        for case, codes in (("alike", [0, 0]), ("unlike", [0, 2])):
            trial = trials[case]
            self.assertEqual([value["step"] for value in trial["values"]], [1])
            told = [int(self.note(trial["number"], rank, "told")[0]) for rank in range(2)]
            self.assertEqual(sorted(told), codes)
            said = self.note(trial["number"], told.index(max(told)), "said")[0]
            if case == "unlike":
                self.assertIn('report from one rank alone, or let the study say "ranks": "mean"', said)

    def test_the_rank_that_failed_is_the_reason(self):
        study = self.study_of(ENDS, ["raises", "killed", "early"], stop_grace_s=0.2, exit_timeout_s=1,
                              max_consecutive_failures=9)
        trials = self.run_study(study, code=1)
        for case, how in (("raises", "exited with code 1"), ("killed", "was killed by signal 9"),
                          ("early", "ended with 0, and others ran on for 1 s (exit_timeout_s)")):
            trial = trials[case]
            self.assertEqual(trial["state"], "TRIAL_FAIL", trial)
            self.assertRegex(trial["reason"], rf"^rank 1 of 2 on \S+ {how.replace('(', '.').replace(')', '.')}")
            self.assertIn("loading the data", trial["last_output"])
            self.assertNotIn("connection closed", trial["last_output"])
            self.expect_nothing_left(trial["number"])
        self.assertIn("ValueError: the reason of rank 1", trials["raises"]["last_output"])

    def test_the_first_of_two_that_fail_together_is_the_reason_whoever_is_late_to_see_it(self):
        study = self.study_of(TOGETHER, ["0", "1"], max_consecutive_failures=9)
        process = self.start("run", study, "--dir", self.dir / "run", "--slots", 2)
        for trial in range(2):
            wait_for(lambda: all(self.note(trial, rank, "pid") for rank in range(2)), "both ranks to run")
            case = int(json.loads(self.export("--db", self.dir / "run/espalier.db")["trials"][trial]["parameters"][0]["json"]))
            runners = [int(self.note(trial, rank, "runner")[0]) for rank in range(2)]
            supervisor = parent_of(runners[0])
            for pid in (*runners, supervisor):
                os.kill(pid, signal.SIGSTOP)
            (self.notes / f"{trial}-go").touch()
            wait_for(lambda: not any(map(is_alive, self.pids(trial))), "both ranks to end")
            # Each runner sees its own rank's end, the later one's first.
            for rank in (1 - case, case):
                os.kill(runners[rank], signal.SIGCONT)
                last = self.pids(trial)[rank]
                wait_for(lambda: not pathlib.Path("/proc", str(last)).exists(), "its runner to see it")
            os.kill(supervisor, signal.SIGCONT)
        process.wait()
        for trial in self.export("--db", self.dir / "run/espalier.db")["trials"]:
            first = int(json.loads(trial["parameters"][0]["json"]))
            self.assertRegex(trial["reason"], rf"^rank {first} of 2 on \S+ exited with code {3 + first}")

    def test_each_rank_is_told_once_to_end_and_killed_after_the_grace(self):
        study = self.study_of(STAYS, ["heeds", "stays"], stop_grace_s=0.5)
        process = self.start("run", study, "--dir", self.dir / "run", "--slots", 4)
        wait_for(lambda: all(len(self.note(t, r, "loader")) > 1 for t in range(2) for r in range(2)), "all ranks to run")
        self.run_tuner("stop", "e2e", "--dir", self.dir / "run")
        process.wait()
        for trial in range(2):
            for rank in range(2):
                self.assertEqual(self.note(trial, rank, "term"), ["SIGTERM"])
                self.assertEqual(set(self.note(trial, rank, "loader")), {"None"}, "its loaders are not told")
            self.expect_nothing_left(trial)

    def test_nothing_is_left_when_who_starts_them_is_killed(self):
        study = self.study_of(STAYS, ["stays"], max_restarts=0)
        process = self.start("run", study, "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: all(self.note(0, rank, "loader") for rank in range(2)), "all ranks to run")
        os.kill(parent_of(self.note(0, 0, "runner")[0]), signal.SIGKILL)
        process.wait()
        self.expect_nothing_left(0)
        trial, = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual((trial["state"], trial["reason"]), ("TRIAL_FAIL", "was killed by signal 9"))

    def test_a_rank_whose_runner_is_killed_is_the_reason(self):
        study = self.study_of(STAYS, ["heeds"])
        process = self.start("run", study, "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: all(self.note(0, rank, "loader") for rank in range(2)), "all ranks to run")
        os.kill(int(self.note(0, 1, "runner")[0]), signal.SIGKILL)
        process.wait()
        self.expect_nothing_left(0)
        trial, = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertRegex(trial["reason"], r"^rank 1 of 2 on \S+ was killed by signal 9")

    def test_ranks_are_forked_from_a_process_that_has_imported_torch(self):
        (self.dir / "packages/torch").mkdir(parents=True)
        self.write("packages/torch/__init__.py", TORCH)
        self.write("packages/torch/_dynamo.py", "")
        paths = os.pathsep.join(map(str, (self.dir / "packages", ROOT / "python")))
        study = self.study_of(FORKED, ["ends", "fails"], preload=["torch"], stop_grace_s=0.2, max_consecutive_failures=9,
                              env={"PYTHONPATH": paths, "IMPORTS": str(self.dir / "imports"), "MASTER_PORT": "1"})
        trials = self.run_study(study)
        self.assertEqual(len((self.dir / "imports").read_text().split()), 1, "processes have imported it")
        self.assertEqual(trials["ends"]["state"], "TRIAL_COMPLETE", trials["ends"])
        self.assertRegex(trials["fails"]["reason"], r"^rank 1 of 2 on \S+ exited with code 3")
        for trial in trials.values():
            ports = set()
            for rank in range(2):
                known, size, port = self.note(trial["number"], rank, "place")[0].split()
                self.assertEqual((known, size), (str(rank), "2"))
                self.assertEqual(self.note(trial["number"], rank, "group"), self.note(trial["number"], rank, "pid"))
                self.assertEqual(self.note(trial["number"], rank, "left"), ["[]"])
                ports.add(port)
            self.assertEqual(len(ports), 1)
            self.assertNotIn("1", ports, "where they meet is the supervisor's to say")
            self.assertEqual(len({self.note(trial["number"], rank, "runner")[0] for rank in range(2)}), 2)
            self.expect_nothing_left(trial["number"])
            log, = (self.dir / "run").rglob(f"trial-{trial['number']}/replica-*.rank-1.log")
            self.assertEqual(log.read_text(), "rank 1 speaks\n")

    def with_launcher(self, ranks, size):
        """The study of a trial whose ranks that launcher starts."""
        launcher = self.write("python3", LAUNCHER.format(notes=self.notes, ranks=ranks, size=size), 0o755)
        study = pathlib.Path(self.study_of(STAYS, ["heeds"], launch="torchrun"))
        study.write_text(study.read_text().replace('"python3"', f'"{launcher}"'))
        return study

    def test_ranks_end_with_their_launcher_which_is_the_reason(self):
        process = self.start("run", self.with_launcher("0 1", 2), "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: all(self.note(0, rank, "loader") for rank in range(2)), "all ranks to run")
        os.kill(int((self.notes / "launcher").read_text()), signal.SIGKILL)
        process.wait()
        self.expect_nothing_left(0)
        trial, = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual(trial["reason"], "torchrun, which had started the ranks, was killed by signal 9")
        self.assertIn("the launcher speaks", trial["last_output"])

    def test_a_launcher_is_not_waited_for_when_its_trial_is_stopped(self):
        process = self.start("run", self.with_launcher("0 1", 2), "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: all(self.note(0, rank, "loader") for rank in range(2)), "all ranks to run")
        self.run_tuner("stop", "e2e", "--dir", self.dir / "run")
        process.wait()
        self.expect_nothing_left(0)
        self.assertEqual([self.note(0, rank, "term") for rank in range(2)], [["SIGTERM"]] * 2)
        self.assertEqual(len((self.notes / "launcher").read_text().split()), 1, "it was ended before it could say more")

    def test_a_launcher_that_starts_another_number_of_ranks_is_refused(self):
        trial = self.run_study(self.with_launcher("0", 1), code=1)["heeds"]
        self.assertEqual(trial["reason"], "torchrun started 1 rank, and the trial has 2 slots on this machine: leave options "
                                          "that say how many out of \"launch\"")
        self.expect_nothing_left(0)

    def test_a_launcher_that_is_not_installed_is_named_with_how_to_install_it(self):
        study = self.study_of(PLACES, ["one"], launch="accelerate", slots=1)
        interpreter = self.write("python3", "#!/bin/sh\necho No module named accelerate >&2\nexit 1\n", 0o755)
        spec = pathlib.Path(study)
        spec.write_text(spec.read_text().replace('"python3"', f'"{interpreter}"'))
        trial = self.run_study(study, slots=1, code=1)["one"]
        self.assertEqual(trial["reason"], "exited with code 1")
        self.assertIn("No module named accelerate\n", trial["last_output"])
        self.assertIn(f"where it is missing, {interpreter} -m pip install accelerate\n", trial["last_output"])


if __name__ == "__main__":
    unittest.main()
