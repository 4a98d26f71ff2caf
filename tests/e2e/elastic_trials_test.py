"""Elastic trials: real groups of real processes, resized and killed while they train."""
import pathlib
import signal
import time
import unittest

from harness import BIN, ROOT, TunerTest, kill, processes, replicas_of, wait_for, zygotes_of

FORKED = {"ESPALIER_FORK": "1"}
PROFILE = ROOT / "examples/emulated/profile.json"


def number(value):
    return int(value)


def place(pid):
    """Where the program lies in the process's memory: at random, but where it was forked."""
    return pathlib.Path(f"/proc/{pid}/maps").read_text().split("-")[0]


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Elastic(TunerTest):
    def emulated(self, epochs, samples, **keys):
        space = {"lr": {"_type": "loguniform", "_value": [0.01, 1]}}
        return self.study([str(BIN / "emulated"), "--profile", str(PROFILE), "--epochs", str(epochs),
                           "--samples", str(samples)], search_space=keys.pop("search_space", space), **keys)

    def trial(self, index=0):
        return self.export("--service", self.grpc)["trials"][index]

    def start_pool(self, slots, study):
        self.serve(self.dir / "pool.db")
        agent = self.agent(slots)
        self.run_tuner("submit", study, "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["trials"], "a slot for the first trial")
        return agent

    def ended(self):
        return self.export("--service", self.grpc)["study"]["state"] != "STUDY_RUNNING"

    def test_lone_trial_grows_and_no_process_is_restarted(self):
        study = self.emulated(6, 4096, trials=1)
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2)
        trial = self.export("--db", self.dir / "run/espalier.db")["trials"][0]
        self.assertEqual(trial["state"], "TRIAL_COMPLETE")
        self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 7)))
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in trial["resizes"]][0], (1, 2))
        self.assertEqual(trial["restarts"], 0)
        logs = list((self.dir / "run/trials/e2e/trial-0").glob("replica-*.log"))
        self.assertEqual(len(logs), 2, "one process a replica, none started again")

    def test_killed_replica_is_survived_and_replaced(self):
        agent = self.start_pool(2, self.emulated(12, 4096, trials=1))
        wait_for(lambda: self.trial()["resizes"], "the trial to grow")
        pids = wait_for(lambda: len(p := replicas_of(agent.pid, "emulated")) == 2 and p, "two replicas")
        before = len(self.trial()["values"])
        self.assertTrue(kill(pids[0]))  # the elder: rank 0
        wait_for(lambda: any(r["after_loss"] for r in self.trial()["resizes"]), "the survivor to go on")
        wait_for(lambda: len(self.trial()["values"]) > before, "its next report")
        wait_for(self.ended, "the study to end")
        trial = self.trial()
        self.assertEqual(trial["state"], "TRIAL_COMPLETE")
        self.assertEqual(trial["restarts"], 0)
        self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 13)), "no report is lost")

    def test_replicas_train_on_while_their_agent_is_replaced(self):
        agent = self.start_pool(2, self.emulated(12, 4096, trials=1))
        wait_for(lambda: self.trial()["resizes"], "the trial to grow")
        pids = wait_for(lambda: len(p := replicas_of(agent.pid, "emulated")) == 2 and p, "two replicas")
        for _ in range(2):
            before = len(self.trial()["values"])
            said = self.run_tuner("agent", "--replace", "--name", "node", "--dir", self.dir / "agent-node").stdout
            self.assertIn(f"process {agent.pid} goes on as release", said)
            wait_for(lambda: len(self.trial()["values"]) > before, "the next report")
            self.assertEqual(replicas_of(agent.pid, "emulated"), pids)
        wait_for(self.ended, "the study to end")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 13)), "the curve goes on")
        self.assertFalse([r for r in trial["resizes"] if r["after_loss"]], "nobody was lost")

    def test_slow_replica_moves_to_another_node_without_a_checkpoint(self):
        agent = self.start_pool(2, self.emulated(12, 4096, trials=1, slots=2))
        wait_for(lambda: self.trial()["values"], "a report")
        pids = wait_for(lambda: len(p := replicas_of(agent.pid, "emulated")) == 2 and p, "two replicas")
        spare = self.agent(1, name="spare")

        def replaced():
            # It stands still for several steps' time again and again, but never for its lease.
            for _ in range(5):
                kill(pids[1], signal.SIGSTOP)
                time.sleep(0.25)
                kill(pids[1], signal.SIGCONT)
                time.sleep(0.01)
            return replicas_of(spare.pid, "emulated")

        wait_for(replaced, "a replica on the other node")
        wait_for(lambda: (2, 2) in [(r["from_replicas"], r["to_replicas"]) for r in self.trial()["resizes"]],
                 "the group to form with it and without the slow one")
        self.assertIn(pids[0], replicas_of(agent.pid, "emulated"), "the other trains on")
        wait_for(self.ended, "the study to end")
        export = self.export("--service", self.grpc)
        moves = [d["reason"] for d in export["decisions"] if d["kind"] == "move"]
        self.assertRegex(moves[0], r"^replica on node slot \d takes .*x as long a step as the others: "
                                   r"replaced by spare slot 0$")
        (trial,) = export["trials"]
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 13)))
        self.assertGreater(trial["step_time_s"], 0)
        self.assertGreater(trial["memory_bytes"], 0)

    def test_stopped_replica_is_noticed_and_replaced(self):
        self.serve(self.dir / "pool.db")
        agent = self.agent(2, options=("--replica-lease", 1))
        self.run_tuner("submit", self.emulated(12, 4096, trials=1), "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["trials"], "a slot for the trial")
        wait_for(lambda: self.trial()["resizes"], "the trial to grow")
        pids = wait_for(lambda: len(p := replicas_of(agent.pid, "emulated")) == 2 and p, "two replicas")
        before = len(self.trial()["values"])
        self.assertTrue(kill(pids[0], signal.SIGSTOP))  # the elder: rank 0
        wait_for(lambda: any(r["after_loss"] for r in self.trial()["resizes"]), "the other to go on")
        wait_for(lambda: len(self.trial()["values"]) > before, "its next report")
        wait_for(self.ended, "the study to end")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 13)), "no report is lost")
        reasons = [d["reason"] for d in self.export("--service", self.grpc)["decisions"]]
        self.assertTrue([r for r in reasons if "a replica hung: not a word for 1" in r], reasons)

    def test_lone_replica_that_hangs_goes_on_from_its_checkpoint(self):
        self.serve(self.dir / "pool.db")
        agent = self.agent(1, options=("--replica-lease", 1))
        self.run_tuner("submit", self.emulated(8, 2048, trials=1), "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["trials"], "a slot for the trial")
        wait_for(lambda: self.trial()["checkpoint"], "a checkpoint")
        (pid,) = replicas_of(agent.pid, "emulated")
        self.assertTrue(kill(pid, signal.SIGSTOP))
        wait_for(self.ended, "the study to end")
        trial = self.trial()
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 1))
        self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 9)))

    def test_pinned_trial_takes_every_size(self):
        self.start_pool(4, self.emulated(400, 2048, trials=1))
        wait_for(lambda: self.trial()["generation"] > 0, "the trial to train")
        for slots in (2, 4, 1, 3):
            self.run_tuner("pin", "e2e", 0, "--slots", slots, "--service", self.grpc)
            wait_for(lambda: self.trial()["slots"] == slots
                     and self.trial()["resizes"][-1:]
                     and self.trial()["resizes"][-1]["to_replicas"] == slots, f"{slots} replicas")
        self.assertEqual(self.trial()["restarts"], 0)

    def test_replica_that_left_is_kept_and_comes_back_without_a_new_process(self):
        agent = self.start_pool(2, self.emulated(400, 2048, trials=1))
        wait_for(lambda: self.trial()["resizes"], "the trial to grow")
        pids = wait_for(lambda: len(p := replicas_of(agent.pid, "emulated")) == 2 and p, "two replicas")
        for slots in (1, 2, 1, 2):
            self.run_tuner("pin", "e2e", 0, "--slots", slots, "--service", self.grpc)
            wait_for(lambda: self.trial()["slots"] == slots
                     and self.trial()["resizes"][-1]["to_replicas"] == slots, f"{slots} replicas")
            self.assertEqual(replicas_of(agent.pid, "emulated"), pids)
        self.assertEqual(self.trial()["restarts"], 0)
        logs = sorted((self.dir / "agent-node/e2e/trial-0").glob("replica-*.log"))
        self.assertEqual(len(logs), 4, "one for each replica")
        self.assertEqual(len({log.resolve() for log in logs}), 2, "of two processes")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        self.assertEqual([number(v["step"]) for v in self.trial()["values"]],
                         list(range(1, len(self.trial()["values"]) + 1)))

    def test_joiner_whose_checkpoint_is_gone_takes_a_newer_one(self):
        # An epoch of 128 samples takes a tenth of a second and two checkpoints are kept: what a joiner
        # is given when it is started has been removed before it has loaded LibTorch.
        self.start_pool(2, self.emulated(3000, 128, trials=1, slots={"min": 1, "max": 2}))
        wait_for(lambda: self.trial()["checkpoint"], "a checkpoint")
        self.run_tuner("pin", "e2e", 0, "--slots", 2, "--service", self.grpc)
        wait_for(lambda: self.trial()["resizes"], "the joiner to come in")
        self.assertEqual(self.trial()["restarts"], 0)
        kinds = [d["kind"] for d in self.export("--service", self.grpc)["decisions"]]
        self.assertNotIn("shrink", kinds, "no joiner was lost")

    def test_replicas_are_forked_where_their_program_makes_its_trial(self):
        self.serve(self.dir / "pool.db")
        agent = self.agent(2, options=("--spare-memory", 0))
        self.run_tuner("submit", self.emulated(3000, 128, trials=1, env=FORKED), "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["trials"], "a slot for the trial")
        wait_for(lambda: self.trial()["values"], "a report")
        self.run_tuner("pin", "e2e", 0, "--slots", 1, "--service", self.grpc)
        wait_for(lambda: len(replicas_of(agent.pid, "emulated")) == 1, "one replica")
        (zygote,) = wait_for(lambda: [pid for pid in zygotes_of(agent.pid, "emulated") if name_of(pid) == "zygote"],
                             "a process to be forked")
        old = replicas_of(agent.pid, "emulated")
        self.run_tuner("pin", "e2e", 0, "--slots", 2, "--service", self.grpc)

        def joiner():
            new = [pid for pid in replicas_of(agent.pid, "emulated") if pid not in old]
            return [r["to_replicas"] for r in self.trial()["resizes"][-1:]] == [2] and new

        for sig in (signal.SIGKILL, signal.SIGABRT):
            (forked,) = wait_for(joiner, "a second replica")
            self.assertEqual((place(forked), name_of(forked)), (place(zygote), "emulated"))
            self.assertEqual([parent for pid, parent, _ in processes() if pid == forked], [agent.pid])
            old.append(forked)
            lost = len([r for r in self.trial()["resizes"] if r["after_loss"]])
            kill(forked, sig)
            wait_for(lambda: len([r for r in self.trial()["resizes"] if r["after_loss"]]) > lost, "the other to go on")
        wait_for(joiner, "a third one")
        self.assertEqual((self.trial()["state"], self.trial()["restarts"]), ("TRIAL_RUNNING", 0))
        kill(agent.pid)
        wait_for(lambda: not [pid for pid, _, _ in processes() if pid == zygote], "no zygote outlives its agent")

    def test_program_with_a_thread_before_its_trial_is_started_as_ever(self):
        program = [str(BIN / "elastic_probe"), "--thread-first", "--set", "samples=64"]
        space = {"lr": {"_type": "loguniform", "_value": [0.01, 0.1]}}
        study = self.study(program, search_space=space, trials=3, env=FORKED)
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 1)
        self.finish(run, 0)
        trials = self.export("--db", self.dir / "run/espalier.db")["trials"]
        self.assertEqual([trial["state"] for trial in trials], ["TRIAL_COMPLETE"] * 3)
        said = [line for line in (self.dir / "run/tuner.log").read_text().splitlines() if "cannot be forked" in line]
        self.assertEqual(len(said), 1, said)
        self.assertIn("it has 2 threads", said[0])

    def test_stopped_study_goes_on_from_checkpoints(self):
        agent = self.start_pool(2, self.emulated(8, 2048, trials=2))
        wait_for(lambda: all(len(t["values"]) >= 2 for t in self.export("--service", self.grpc)["trials"]),
                 "two epochs of both")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: self.run_tuner("pool", "--service", self.grpc).stdout.startswith("0 of 2 slots"),
                 "all replicas to leave")
        for trial in self.export("--service", self.grpc)["trials"]:
            self.assertEqual(trial["state"], "TRIAL_PAUSED")
            self.assertTrue(trial["checkpoint"])
        self.run_tuner("resume", "e2e", "--service", self.grpc)
        wait_for(self.ended, "the study to end")
        for trial in self.export("--service", self.grpc)["trials"]:
            self.assertEqual(trial["state"], "TRIAL_COMPLETE")
            self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 9)))

    def test_trials_train_on_while_the_service_is_killed(self):
        database = self.dir / "pool.db"
        agent = self.start_pool(2, self.emulated(15, 2048, trials=2))
        grpc, http = self.grpc, self.http
        service = self.processes[0]
        wait_for(lambda: all(t["values"] for t in self.export("--service", grpc)["trials"]), "a value of both")
        pids = replicas_of(agent.pid, "emulated")
        for _ in range(3):
            kill(service.pid)
            service.wait()
            self.assertEqual(replicas_of(agent.pid, "emulated"), pids)
            service = self.serve(database, grpc, http)
            have = sum(len(t["values"]) for t in self.export("--service", grpc)["trials"])
            wait_for(lambda: sum(len(t["values"]) for t in self.export("--service", grpc)["trials"]) > have
                     or self.ended(), "more values")
        wait_for(self.ended, "the study to end")
        for trial in self.export("--service", grpc)["trials"]:
            self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
            self.assertEqual([number(v["step"]) for v in trial["values"]], list(range(1, 16)))

    def test_crashing_program_shows_its_message(self):
        study = self.study([str(BIN / "emulated"), "--profile", "/does/not/exist.json"],
                           trials=9, max_consecutive_failures=2)
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 1)
        self.finish(run, 1)
        self.assertIn("/does/not/exist.json", self.output(run))

    def test_interrupt_with_elastic_trials(self):
        run = self.start("run", self.emulated(50, 2048, trials=2), "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: len(replicas_of(run.pid, "emulated")) == 2, "two trials")
        wait_for(lambda: (self.dir / "run/trials/e2e/trial-0/checkpoints").exists(), "a checkpoint")
        kill(run.pid, signal.SIGINT)
        self.finish(run, 130)
        states = [t["state"] for t in self.export("--db", self.dir / "run/espalier.db")["trials"]]
        self.assertEqual(states, ["TRIAL_PAUSED"] * 2)


if __name__ == "__main__":
    unittest.main()
