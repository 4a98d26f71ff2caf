"""Agents that are replaced in place, and agents that follow one that was killed."""
import os
import pathlib
import signal
import sys
import unittest

from harness import LEASE_S, ROOT, TunerTest, environment_of, processes, replicas_of, wait_for

# Each step on record, and two of its family in sessions of their own.
FAMILY = 'if [ $step = 1 ]; then setsid sleep 1000 & (setsid sh -c "sleep 1001 & sleep 1002" &); fi'


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def words(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


class Upgrade(TunerTest):
    def submit(self, steps, also=":"):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.node = self.agent(1, "n1")
        self.home = self.dir / "agent-n1" / ".agent" / "n1"
        # Its last step but one is followed by the end of the test's doings, however long they take.
        gate = f"while [ $step = {steps - 1} ] && [ ! -e {self.dir}/done ]; do sleep 0.05; done"
        study = self.study([self.resumable_trial(steps, 0.1, f"{also}\n{gate}")], trials=1)
        self.run_tuner("submit", study, "--service", self.grpc)
        self.await_step(3)
        self.trial, = replicas_of(self.node.pid, "trial.sh")

    def steps(self):
        trials = self.export("--service", self.grpc)["trials"]
        return [int(v["step"]) for v in trials[0].get("values", [])] if trials else []

    def await_step(self, step):
        wait_for(lambda: self.steps()[-1:] >= [step], f"step {step}")

    def replace(self, code=0):
        return self.run_tuner("agent", "--replace", "--name", "n1", "--dir", self.dir / "agent-n1", code=code)

    def ask_for(self, program):
        """What `--replace` does, with a program of the test's."""
        (self.home / "replaced").unlink(missing_ok=True)
        (self.home / "replace-by").write_text(str(program))
        self.node.send_signal(signal.SIGHUP)

    def await_refusal(self):
        wait_for((self.home / "replaced").exists, "the outcome")
        return (self.home / "replaced").read_text()

    def finish_undisturbed(self, steps):
        (self.dir / "done").touch()
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE", "the study")
        record = self.export("--service", self.grpc)
        trial, = record["trials"]
        self.assertEqual(self.steps(), list(range(1, steps + 1)))
        self.assertEqual(int(trial.get("restarts", 0)), 0)
        self.assertEqual(len(trial["spans"]), 1, "the slot was never given back")

    def test_replicas_train_on_while_their_agent_is_replaced(self):
        self.submit(40)
        said = self.replace().stdout
        self.assertIn(f"process {self.node.pid} goes on as release ", said)
        self.assertIn("--take-over", words(self.node.pid))
        # The second time other threads end than those that have started the trial, if all is well.
        self.assertIn("goes on as release", self.replace().stdout)
        (self.home / "replaced").unlink()
        self.node.send_signal(signal.SIGHUP)
        self.assertTrue(self.await_refusal().startswith("yes "))
        self.assertEqual(words(self.node.pid).count("--take-over"), 1)
        self.assertEqual(replicas_of(self.node.pid, "trial.sh"), [self.trial])
        self.finish_undisturbed(40)
        # What came after is a child as all others.
        after = self.write("after.sh", "#!/bin/sh\ntuner tell --final --value 1\n", 0o755)
        self.run_tuner("submit", self.study([after], name="next", trials=1),
                       "--service", self.grpc, "--wait")
        self.node.send_signal(signal.SIGTERM)
        self.finish(self.node)

    def test_a_program_that_cannot_take_over_changes_nothing(self):
        self.submit(40)
        self.ask_for(self.write("broken", "#!/bin/sh\necho lib42.so not found; exit 127\n", 0o755))
        refusal = self.await_refusal()
        self.assertIn("broken cannot take over (exit code 127): lib42.so not found", refusal)
        self.assertIn("is not replaced and goes on", self.output(self.node))
        self.ask_for(self.dir / "absent")
        self.assertIn("No such file", self.await_refusal())
        self.ask_for(self.write("crashes", "#!/bin/sh\nkill -SEGV $$\n", 0o755))
        self.assertIn("cannot take over (signal 11)", self.await_refusal())
        self.assertNotIn("--take-over", words(self.node.pid))
        self.finish_undisturbed(40)

    def test_killed_while_it_is_being_replaced_it_leaves_nothing(self):
        self.submit(1000, FAMILY)
        # Other tests' trials sleep too; those of this one are told of its folder.
        own = lambda pid: any(str(self.dir).encode() in variable for variable in environment_of(pid))
        family = lambda: [pid for pid, _, line in processes() if line in STRAYS and own(pid)]
        strays = wait_for(lambda: len(found := family()) == len(STRAYS) and found, "the family")
        self.ask_for(self.write("slow", f"#!/bin/sh\necho $$ > {self.dir}/trying; exec sleep 1000\n", 0o755))
        trying = int(wait_for(lambda: (self.dir / "trying").exists() and (self.dir / "trying").read_text(), "the try"))
        self.assertTrue(all(lives(pid) for pid in [self.trial, *strays]))
        self.node.kill()
        self.node.wait()
        wait_for(lambda: not lives(trying), "the end of the try")
        wait_for(lambda: not any(lives(pid) for pid in strays), "the end of the family")

    def test_a_replica_that_waits_for_a_zygote_is_started_before(self):
        """PyTorch is a module here that is never imported to its end."""
        os.mkfifo(self.dir / "never")
        self.write("torch.py", f"open('{self.dir}/never').read()\n")
        self.write("mine.py", "import subprocess, sys\n"
                              "sys.exit(subprocess.call(['tuner', 'tell', '--final', '--value', '1']))\n")
        self.serve(self.dir / "pool.db")
        self.node = self.agent(1, "n1")
        study = self.study([sys.executable, "-m", "espalier._call", "mine:f"], trials=1,
                           env={"PYTHONPATH": f"{ROOT}/python:{self.dir}"})
        self.run_tuner("submit", study, "--service", self.grpc)
        wait_for(lambda: replicas_of(self.node.pid, "espalier._zygote"), "what imports")
        self.assertEqual(replicas_of(self.node.pid, "espalier._call"), [])
        self.assertIn("goes on as release", self.replace().stdout)
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE", "the study")

    def test_where_no_agent_runs_there_is_nothing_to_replace(self):
        said = self.replace(code=4).stderr
        self.assertIn(f'no agent named "n1" runs in the directory {self.dir}/agent-n1 on this machine', said)
        self.assertIn("--join is required", self.run_tuner("agent", code=2).stderr)
        self.run_tuner("agent", "--replace", "--join", "127.0.0.1:1", code=2)

    def test_two_agents_of_one_name_in_one_directory(self):
        self.serve(self.dir / "pool.db")
        first = self.agent(1, "n1")
        wait_for(lambda: "n1" in self.run_tuner("pool", "--service", self.grpc).stdout, "the node")
        second = self.agent(1, "n1")
        self.finish(second, code=2)
        self.assertIn(f'an agent named "n1" runs in the directory {self.dir}/agent-n1 already '
                      f"(process {first.pid}): end it first, replace it in place", self.output(second))


STRAYS = (["sleep", "1000", ""], ["sleep", "1001", ""], ["sleep", "1002", ""])


if __name__ == "__main__":
    unittest.main()
