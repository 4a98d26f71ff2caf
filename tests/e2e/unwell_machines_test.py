"""What a machine lacks, or a terminal that goes, ends neither studies nor services; what trials start ends with them."""
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import machine  # noqa: E402

import memory_group  # noqa: E402
from harness import TunerTest, processes, tuner_command, wait_for  # noqa: E402


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

    def test_slots_for_which_there_are_not_enough_descriptors_are_refused(self):
        study = self.study(["true"])
        for limit, slots, fitting in ((1024, 481, "offer 480 slots or fewer, or raise"), (66, 2, "offer 1 slot or fewer, or raise"),
                                      (65, 1, "may have 65: raise")):
            for start in (("run", study, "--dir", self.dir / "run"), ("agent", "--join", self.unanswered_address())):
                told = self.run_tuner(*start, "--slots", slots, prefix=["prlimit", f"--nofile={limit}:{limit}"], code=2).stderr
                self.assertIn(f"--slots {slots}: needs {2 * slots + 64} open files", told)
                self.assertIn(fitting, told)


def watch_of(agent):
    """The number of the process that watches an agent, or None."""
    return next((pid for pid, _, words in processes() if words[1:3] == ["--watch-agent", str(agent.pid)]), None)


def children_of(agent):
    """Of its first thread, but for the process that watches it."""
    text = pathlib.Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text()
    return [pid for pid in map(int, text.split()) if pid != watch_of(agent)]


def sleeping(seconds):
    """The numbers of the processes that sleep so long, by which they are told from others."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", str(seconds).encode()]:
            found.append(int(folder.name))
    return found


class WhatTrialsLeave(TunerTest):
    """Nothing that a trial has started outlives it: by the time that its slot is free, all of it has ended."""
    IN_SESSION = "setsid sleep {a} & setsid sh -c 'sleep {b} & sleep {b}; :' & "
    IN_FORK = """import os, signal, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.Popen(["sleep", "{b}"])
        time.sleep(1000)
    os._exit(0)
subprocess.Popen(["sleep", "{a}"], start_new_session=True)
"""

    def setUp(self):
        super().setUp()
        self.serve(self.dir / "pool.db")
        self.node = self.agent(1)
        self.next = 50_000 + os.getpid() % 10_000

    def started(self, name, script):
        """A study whose trial has started what sleeps. The seconds."""
        self.next += 2
        a, b = self.next, self.next + 1
        command = ["sh", "-c", script] if name.startswith("session") else [sys.executable, "-c", script]
        command[-1] = command[-1].replace("{a}", str(a)).replace("{b}", str(b))
        self.run_tuner("submit", self.study(command, name=name, trials=1), "--service", self.grpc)
        wait_for(lambda: sleeping(a) and sleeping(b), "the trial's processes")
        return a, b

    def expect_nothing(self, name, seconds):
        wait_for(lambda: self.run_tuner("pool", "--service", self.grpc).stdout.startswith("0 of 1 slots"), "the slot to be free")
        self.assertEqual([pid for each in seconds for pid in sleeping(each)], [], name)
        wait_for(lambda: not children_of(self.node), "the agent to have reaped all")

    def test_a_trial_that_is_cancelled(self):
        for name, script in (("session", self.IN_SESSION + "sleep 1000"), ("fork", self.IN_FORK + "time.sleep(1000)")):
            seconds = self.started(name, script)
            self.run_tuner("cancel", name, 0, "--service", self.grpc)
            self.expect_nothing(name, seconds)

    def test_a_trial_that_ends(self):
        wait = "until [ -e {go} ]; do sleep 0.05; done; tuner tell --final --value 0.5"
        for name, script in (("session", self.IN_SESSION + wait), ("fork", self.IN_FORK + f"subprocess.run({['sh', '-c', wait]})")):
            go = self.dir / f"go-{name}"
            seconds = self.started(name, script.replace("{go}", str(go)))
            go.touch()
            self.run_tuner("watch", name, "--service", self.grpc)
            self.expect_nothing(name, seconds)

    def test_a_trial_whose_first_process_is_killed(self):
        for name, script in (("session", self.IN_SESSION + "sleep 1000"), ("fork", self.IN_FORK + "time.sleep(1000)")):
            seconds = self.started(name, script)
            trial = self.export("--service", self.grpc, study=name)["trials"][0]
            self.assertEqual(trial["state"], "TRIAL_RUNNING")
            os.kill(min(children_of(self.node)), signal.SIGKILL)  # the others are adopted already
            self.expect_nothing(name, seconds)

    def test_what_other_trials_have_started_lives_on(self):
        self.agent(1, name="other", options=())
        first = self.started("session", self.IN_SESSION + "sleep 1000")
        second = self.started("session2", self.IN_SESSION + "sleep 1000")
        self.run_tuner("cancel", "session", 0, "--service", self.grpc)
        wait_for(lambda: not sleeping(first[0]) and not sleeping(first[1]), "those of the first to end")
        self.assertTrue(sleeping(second[0]) and sleeping(second[1]))


class WhatKilledAgentsLeave(TunerTest):
    """Nothing of a trial outlives its agent, whoever was killed, and by whatever kill."""
    WITHIN_S = 10  # as docs/pool.md says
    KINDS = {
        "its own group": ["sh", "-c", "sleep {a} & sleep {b}"],
        "deaf": ["sh", "-c", "trap '' TERM HUP INT; sleep {a} & nohup sleep {b} & while :; do sleep 0.1; done"],
        "session": ["sh", "-c", WhatTrialsLeave.IN_SESSION + "exec sleep 1000"],
        "fork": [sys.executable, "-c", WhatTrialsLeave.IN_FORK + "time.sleep(1000)"],
        "bare": ["sh", "-c", "setsid sh -c 'env -i sleep {a} & env -i sleep {b} & wait' & sleep 1000"],
    }

    def command(self, kind, number):
        """A trial's, with the seconds that what it starts sleeps."""
        a = 60_000 + os.getpid() % 1000 * 20 + 2 * number
        return [word.replace("{a}", str(a)).replace("{b}", str(a + 1)) for word in self.KINDS[kind]], (a, a + 1)

    def await_started(self, seconds):
        wait_for(lambda: all(map(sleeping, seconds)), "the trial's processes")

    def await_nothing(self, seconds):
        wait_for(lambda: not any(map(sleeping, seconds)), "the end of the trial's processes", self.WITHIN_S)

    def train(self, kind, number=0, name="e2e"):
        command, seconds = self.command(kind, number)
        self.run_tuner("submit", self.study(command, name=name, trials=1), "--service", self.grpc)
        self.await_started(seconds)
        return seconds

    def watched(self, agent):
        return wait_for(lambda: watch_of(agent), "the process that watches the agent")

    def kill_group(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def test_a_run(self):
        for number, kind in enumerate(self.KINDS):
            with self.subTest(kind):
                command, seconds = self.command(kind, number)
                run = self.start("run", self.study(command, trials=1), "--dir", self.dir / kind, "--slots", 1, start_new_session=True)
                self.await_started(seconds)
                watch = self.watched(run)
                (self.kill_group if number % 2 else lambda process: (process.kill(), process.wait()))(run)
                self.await_nothing(seconds)
                wait_for(lambda: not pathlib.Path(f"/proc/{watch}").exists(), "the end of what has watched it")

    def test_an_agent_that_none_follows_and_not_what_others_have_started(self):
        self.serve(self.dir / "pool.db")
        other = self.agent(1, "other")
        others = self.train("session", name="others")
        for number, kind in enumerate(self.KINDS, 1):
            with self.subTest(kind):
                node = self.agent(1, f"node-{number}")
                seconds = self.train(kind, number, name=f"study-{number}")
                node.kill()
                self.await_nothing(seconds)
                self.run_tuner("stop", f"study-{number}", "--service", self.grpc)
                self.assertTrue(all(map(sleeping, others)), kind)
        watch = self.watched(other)
        other.send_signal(signal.SIGTERM)
        self.finish(other)
        self.assertEqual(list(filter(sleeping, others)), [])
        self.assertFalse(pathlib.Path(f"/proc/{watch}").exists(), "an agent that ends takes along what watches it")

    def test_what_is_sent_to_all_processes_of_a_job_does_not_end_the_watch(self):
        self.serve(self.dir / "pool.db")
        node = self.agent(1, options=("--drain-on-usr1", 60))
        seconds = self.train("session")
        watch = self.watched(node)
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            os.kill(watch, number)
        node.kill()
        self.await_nothing(seconds)

    def test_a_watch_that_is_killed_is_followed_by_another(self):
        self.serve(self.dir / "pool.db")
        node = self.agent(1)
        seconds = self.train("session")
        first = self.watched(node)
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: watch_of(node) not in (None, first), "another")
        self.assertTrue(all(map(sleeping, seconds)))
        node.kill()
        self.await_nothing(seconds)

    def test_both_are_killed_and_the_next_agent_does_it(self):
        self.serve(self.dir / "pool.db")
        node = self.agent(1)
        seconds = self.train("session")
        watch = self.watched(node)
        node.send_signal(signal.SIGSTOP)
        os.kill(watch, signal.SIGKILL)
        node.kill()
        node.wait()
        self.assertTrue(all(map(sleeping, seconds)), "or this test shows nothing")
        self.agent(1)
        self.await_nothing(seconds)

    def test_an_agent_that_follows_at_once_keeps_what_it_starts(self):
        self.serve(self.dir / "pool.db")
        command, seconds = self.command("session", 0)
        node = self.agent(1)
        self.run_tuner("submit", self.study(command, trials=1), "--service", self.grpc)
        for _ in range(3):
            self.await_started(seconds)
            before = {pid for each in seconds for pid in sleeping(each)}
            watch = self.watched(node)
            node.kill()
            node.wait()
            node = self.agent(1)
            wait_for(lambda: not before & {pid for each in seconds for pid in sleeping(each)}, "the end of the first ones")
            self.await_started(seconds)
            wait_for(lambda: not pathlib.Path(f"/proc/{watch}").exists(), "the end of what has watched the first agent")
            self.assertTrue(all(map(sleeping, seconds)), "what the second agent has started lives on")

    def test_an_agent_that_was_replaced(self):
        self.serve(self.dir / "pool.db")
        node = self.agent(1)
        seconds = self.train("session")
        watch = self.watched(node)
        self.run_tuner("agent", "--replace", "--name", "node", "--dir", self.dir / "agent-node")
        self.assertEqual(watch_of(node), watch)
        self.assertTrue(all(map(sleeping, seconds)))
        node.kill()
        self.await_nothing(seconds)


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
        self.assertEqual(run.wait(timeout=60), 0, "whose reader has left is told nothing more")
        self.assertEqual({trial["state"] for trial in self.export("--dir", self.dir / "run")["trials"]}, {"TRIAL_COMPLETE"})


if __name__ == "__main__":
    unittest.main()
