"""What a machine lacks, or a terminal that goes, ends neither studies nor services."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import machine  # noqa: E402

import memory_group  # noqa: E402
from harness import TunerTest, tuner_command, wait_for  # noqa: E402


class FailedStarts(TunerTest):
    def spread(self, prefix=(), trials=12):
        """A study on two nodes, one of which cannot start its trials, for what its folder has or its prefix does; what came of it."""
        self.serve(self.dir / "pool.db")
        agents = [self.agent(2, name="unwell", prefix=[*prefix]), self.agent(2, name="well")]
        self.pause_until_connected(agents)
        script = self.write("trial.sh", "#!/bin/sh\necho $ESPALIER_NODE_ID\ntuner tell --final --value 0.5\n", 0o755)
        self.run_tuner("submit", self.study([script], trials=trials), "--service", self.grpc)
        self.run_tuner("watch", "e2e", "--service", self.grpc)
        return self.export("--service", self.grpc)

    def pause_until_connected(self, agents):
        wait_for(lambda: f"of {2 * len(agents)} slots" in self.run_tuner("pool", "--service", self.grpc).stdout, "the agents")

    def expect_complete(self, details):
        self.assertEqual(details["study"]["state"], "STUDY_COMPLETE", details["study"])
        self.assertEqual({trial["state"] for trial in details["trials"]}, {"TRIAL_COMPLETE"})
        told = [decision["reason"] for decision in details["decisions"] if "of unwell cannot be used" in decision["reason"]]
        self.assertTrue(told and "it is tried again after" in told[0], details["decisions"])

    def test_a_folder_that_cannot_be_made(self):
        (self.dir / "agent-unwell").mkdir()
        (self.dir / "agent-unwell/e2e").write_text("in place of the study's folder")
        self.expect_complete(self.spread())

    def test_a_full_disk(self):
        machine.need(self, "namespaces")
        disk = self.dir / "agent-unwell/e2e"
        disk.mkdir(parents=True)
        fill = f"mount -t tmpfs -o size=64k tmpfs {disk} && dd if=/dev/zero of={disk}/full bs=4k 2>/dev/null; " + 'exec "$@"'
        self.expect_complete(self.spread(prefix=["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", fill, "sh"]))

    def test_descriptors_are_taken_as_far_as_they_may_be_and_trials_begin_with_the_former_limit(self):
        script = self.write("trial.sh", "#!/bin/sh\nulimit -Sn\ntuner tell --final --value 0.5\nsleep 1\n", 0o755)
        study = self.study([script], trials=60)
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 60, prefix=["prlimit", "--nofile=96:4096"])
        details = self.export("--dir", self.dir / "run")
        self.assertEqual({trial["state"] for trial in details["trials"]}, {"TRIAL_COMPLETE"})
        log = next((self.dir / "run/trials/e2e/trial-7").glob("replica-*.log")).read_text()
        self.assertEqual(log.splitlines()[0], "96")


class LittleMemory(TunerTest):
    def start_limited(self, megabytes, *arguments):
        machine.need(self, "memory_group")
        group = memory_group.make(f"espalier-e2e-{os.getpid()}", megabytes)
        self.addCleanup(lambda: wait_for(lambda: not (group / "cgroup.procs").read_text(), "the group to be empty") and group.rmdir())
        return self.start(*arguments, prefix=memory_group.enter(group))

    def test_a_trial_that_is_killed_for_want_of_memory_says_so(self):
        self.serve(self.dir / "pool.db")
        self.start_limited(120, "agent", "--join", self.grpc, "--slots", 1, "--name", "small", "--dir", self.dir / "agent")
        for name, command in (("itself", [sys.executable, "-c", "x = bytearray(400 << 20)"]),
                              ("in_a_shell", ["sh", "-c", f"{sys.executable} -c 'x = bytearray(400 << 20)'; exit $?"])):
            self.run_tuner("submit", self.study(command, name=name, trials=1), "--service", self.grpc)
            self.run_tuner("watch", name, "--service", self.grpc, code=1)
            trial = self.export("--service", self.grpc, study=name)["trials"][0]
            self.assertIn("was killed: out of memory (limit 120 MB)", trial["reason"] + trial["last_output"], trial)


class BrokenPipes(TunerTest):
    def start_piped(self, *arguments):
        """A verb whose output goes to a reader that has gone when it has said its first line."""
        process = subprocess.Popen(tuner_command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=dict(os.environ))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_service_and_its_agent_outlive_their_readers(self):
        service = self.start_piped("serve", "--db", self.dir / "pool.db", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        lines = []
        while not lines or not lines[-1].startswith("to join"):
            lines.append(service.stdout.readline())
        self.grpc = next(line.split()[1] for line in lines if line.startswith("gRPC"))
        service.stdout.close()
        agent = self.start_piped("agent", "--join", self.grpc, "--slots", 1, "--dir", self.dir / "agent", "--name", "piped")
        agent.stdout.readline()
        agent.stdout.close()
        script = self.write("trial.sh", "#!/bin/sh\ntuner tell --final --value 0.5\n", 0o755)
        self.run_tuner("submit", self.study([script], trials=3), "--service", self.grpc)
        self.run_tuner("watch", "e2e", "--service", self.grpc)
        for process in (agent, service):
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(timeout=60), 0)

    def test_a_run_goes_on_without_its_reader(self):
        script = self.write("trial.sh", "#!/bin/sh\nsleep 0.2\ntuner tell --final --value 0.5\n", 0o755)
        run = self.start_piped("run", self.study([script], trials=6), "--dir", self.dir / "run", "--slots", 1)
        run.stdout.readline()
        run.stdout.close()
        self.assertEqual(run.wait(timeout=60), 1, "not all that it had to say was printed")
        self.assertEqual({trial["state"] for trial in self.export("--dir", self.dir / "run")["trials"]}, {"TRIAL_COMPLETE"})


if __name__ == "__main__":
    unittest.main()
