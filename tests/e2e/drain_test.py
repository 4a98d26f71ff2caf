"""Nodes that are to be emptied: by a user, and by the notice that their machine goes away."""
import fcntl
import json
import os
import pty
import signal
import termios
import unittest
import urllib.request

from harness import LEASE_S, TunerTest, kill, running, wait_for


class Drain(TunerTest):
    def submit(self, steps, trials, also=":"):
        script = self.resumable_trial(steps, 0.1, also)
        self.run_tuner("submit", self.study([script], trials=trials), "--service", self.grpc)

    def trials(self):
        return self.export("--service", self.grpc)["trials"]

    def node(self, name):
        with urllib.request.urlopen(f"http://{self.http}/api/pool") as answer:
            nodes = json.load(answer)["nodes"]
        return next(n for n in nodes if n["name"] == name)

    def test_a_notice_moves_the_trial_and_the_agent_leaves(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        spot = self.agent(1, "spot", ("--spot", "--gpu-type", "T4", "--price-per-hour", "0.35",
                                      "--drain-on-usr1", "4"))
        self.submit(60, trials=1, also=self.until_go())
        step = lambda: len(self.trials()[0].get("values", []))
        wait_for(lambda: self.trials() and step() > 3, "some steps")
        node = self.node("spot")
        self.assertEqual((node["gpu_type"], node["spot"], node["price_per_hour"]), ("T4", True, 0.35))
        self.agent(1, "other")
        spot.send_signal(signal.SIGUSR1)
        self.finish(spot)
        self.assertIn("emptying this node", self.output(spot))
        self.go()
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE",
                 "the study to end on the other node")
        record = self.export("--service", self.grpc)
        trial = record["trials"][0]
        self.assertEqual(trial["state"], "TRIAL_COMPLETE")
        self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, 61)))
        nodes = [span["slots"][0]["node_id"] for span in trial["spans"]]
        self.assertEqual(len(nodes), 2, "once here, then there")
        reasons = [d["reason"] for d in record["decisions"] if d["kind"] == "pool"]
        self.assertTrue(any("node spot drains" in r for r in reasons), reasons)

    def test_trials_of_an_agent_that_is_ended_go_on_elsewhere_and_none_has_failed(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.submit(100_000, trials=4)
        last = self.agent(2, "node-0")
        steps = lambda: sum(len(trial.get("values", [])) for trial in self.trials())
        wait_for(lambda: len(self.trials()) == 2 and steps() > 4, "two trials to train")
        for number, told in enumerate((signal.SIGTERM, signal.SIGINT, signal.SIGTERM), 1):
            following = self.agent(2, f"node-{number}")
            last.send_signal(told)
            self.finish(last)
            last, before = following, steps()
            wait_for(lambda: steps() > before + 4, "trials to go on")
            self.assertEqual({trial["state"] for trial in self.trials()}
                             - {"TRIAL_RUNNING", "TRIAL_PAUSED", "TRIAL_WAITING"}, set())
        self.assertEqual(sum(trial["restarts"] for trial in self.trials()), 0)

    def test_a_system_that_ends_all_its_processes_fails_no_trial_but_one_process_that_is_ended_alone_has_failed(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.submit(100_000, trials=2)
        agent = self.agent(2, "first")
        programs = lambda: running(str(self.dir / "trial.sh"))
        steps = lambda: [len(trial.get("values", [])) for trial in self.trials()]
        wait_for(lambda: len(programs()) == 2 and min(steps()) > 2, "two trials to train")
        agent.send_signal(signal.SIGSTOP)  # so that it sees both at once
        for pid in programs():  # as systemd and a plain scancel do
            kill(pid, signal.SIGTERM)
        agent.send_signal(signal.SIGTERM)
        agent.send_signal(signal.SIGCONT)
        self.finish(agent)
        self.assertEqual({trial["state"] for trial in self.trials()} & {"TRIAL_FAIL"}, set())
        before = steps()
        self.agent(2, "second")
        wait_for(lambda: all(now > then for now, then in zip(steps(), before)), "both to go on")
        self.assertTrue(kill(programs()[0], signal.SIGTERM))
        wait_for(lambda: "TRIAL_FAIL" in [trial["state"] for trial in self.trials()], "it to have failed")

    def test_a_notice_to_all_processes_is_the_nodes_and_fails_no_trial(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.submit(100_000, trials=2)
        agent = self.agent(2, "first", ("--drain-on-usr1", "20"))
        programs = lambda: running(str(self.dir / "trial.sh"))
        steps = lambda: [len(trial.get("values", [])) for trial in self.trials()]
        wait_for(lambda: len(programs()) == 2 and min(steps()) > 2, "two trials to train")
        agent.send_signal(signal.SIGSTOP)  # likewise: it waits for its own notice for half a second
        for pid in programs():  # as sbatch --signal=USR1@120 does, to the programs first
            kill(pid, signal.SIGUSR1)
        agent.send_signal(signal.SIGUSR1)
        agent.send_signal(signal.SIGCONT)
        self.finish(agent)
        self.assertEqual([(trial["state"], trial["restarts"]) for trial in self.trials()], [("TRIAL_PAUSED", 0)] * 2)
        before = steps()
        self.agent(2, "second")
        wait_for(lambda: all(now > then for now, then in zip(steps(), before)), "both to go on")
        self.assertTrue(kill(programs()[0], signal.SIGUSR1))
        wait_for(lambda: "TRIAL_FAIL" in [trial["state"] for trial in self.trials()], "the one that nobody but it was told to have failed")

    def agent_in_a_terminal(self, slots, name, options=()):
        """Its process, and the terminal, which os.close closes as when a window or a connection is."""
        terminal, inside = pty.openpty()

        def begin():
            os.setsid()
            fcntl.ioctl(inside, termios.TIOCSCTTY, 0)
        agent = self.agent(slots, name, options, preexec_fn=begin)
        os.close(inside)
        return agent, terminal

    def test_an_agent_whose_terminal_is_closed_empties_its_node(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.submit(100_000, trials=2)
        agent, terminal = self.agent_in_a_terminal(2, "first", ("--drain-on-term", "20"))
        steps = lambda: [len(trial.get("values", [])) for trial in self.trials()]
        wait_for(lambda: len(steps()) == 2 and min(steps()) > 2, "two trials to train")
        os.close(terminal)
        self.finish(agent)
        self.assertEqual(self.output(agent).count("the machine goes away in 20 s: emptying this node"), 1)
        self.assertEqual([(trial["state"], trial["restarts"]) for trial in self.trials()], [("TRIAL_PAUSED", 0)] * 2)
        before = steps()
        self.agent(2, "second")
        wait_for(lambda: all(now > then for now, then in zip(steps(), before)), "both to go on")

    def test_trials_that_are_hung_up_before_their_agent_train_on_until_it_ends_them(self):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        self.submit(100_000, trials=2)
        agent, terminal = self.agent_in_a_terminal(2, "first")
        programs = lambda: running(str(self.dir / "trial.sh"))
        steps = lambda: [len(trial.get("values", [])) for trial in self.trials()]
        wait_for(lambda: len(programs()) == 2 and min(steps()) > 2, "two trials to train")
        before, at = programs(), steps()
        for pid in before:  # as systemd does with all processes of a session that it ends, in whatever order
            kill(pid, signal.SIGHUP)
        wait_for(lambda: all(now > then + 2 for now, then in zip(steps(), at)), "both to go on")
        self.assertEqual(programs(), before)
        os.close(terminal)
        self.finish(agent)
        self.assertEqual([(trial["state"] != "TRIAL_FAIL", trial["restarts"]) for trial in self.trials()], [(True, 0)] * 2)
        before = steps()
        self.agent(2, "second")
        wait_for(lambda: all(now > then for now, then in zip(steps(), before)), "both to go on")

    def test_a_drained_node_takes_trials_again_when_it_is_undone(self):
        self.serve(self.dir / "pool.db")
        self.agent(1, "a")
        wait_for(lambda: "of 1 slots" in self.run_tuner("pool", "--service", self.grpc).stdout, "the node")
        self.run_tuner("drain", "nowhere", "--service", self.grpc, code=4)
        said = self.run_tuner("drain", "a", "--service", self.grpc).stdout
        self.assertIn("is empty, and stays empty", said)
        self.assertIn("drained", self.run_tuner("pool", "--service", self.grpc).stdout)
        self.submit(2, trials=1)
        self.assertEqual(self.trials(), [])
        self.run_tuner("drain", "a", "--undo", "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE",
                 "the study to end")


if __name__ == "__main__":
    unittest.main()
