"""Elastic trials: real groups of real processes, resized and killed while they train."""
import json
import pathlib
import re
import signal
import subprocess
import time
import unittest

from harness import (BIN, LEASE_S, ROOT, TUNER, TunerTest, kill, processes, replicas_of, two_replicas_of, wait_for,
                     zygotes_of)

FORKED = {"ESPALIER_FORK": "1"}
PROFILE = ROOT / "examples/emulated/profile.json"
SPACE = {"lr": {"_type": "loguniform", "_value": [0.01, 1]}}
ENDLESS = 100_000  # epochs of a trial that the test ends, for nobody knows how long a busy machine takes until then
HUNG_S = 20  # of a replica, where it hangs: a busy machine may keep one waiting that does not


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
    def tearDown(self):
        """Where a test fails it also shows how its trials came by their slots."""
        if (service := getattr(self, "grpc", None)) is not None:
            done = subprocess.run([TUNER, "export", "e2e", "--service", service, "--format", "json"], capture_output=True)
            record = json.loads(done.stdout or '{"trials": [], "decisions": []}')
            self._last_printed += "".join(f"\n{t['state']} on {t['slots']}: {t['resizes']}" for t in record["trials"])
            self._last_printed += "".join(f"\n{d['at']} {d['kind']}: {d['reason']}" for d in record["decisions"])
        super().tearDown()

    def program(self, epochs, samples):
        return [str(BIN / "emulated"), "--profile", str(PROFILE), "--epochs", str(epochs), "--samples", str(samples)]

    def emulated(self, epochs, samples, **keys):
        return self.study(self.program(epochs, samples), search_space=SPACE, **keys)

    def until_told(self, **keys):
        """A study of trials that train until end() lets them come to their end."""
        program = [str(BIN / "elastic_probe"), "--set", "epochs=0", "--set", "samples=320", "--set", "compute_ms=50",
                   "--set", f"log={self.dir}"]
        space = {"lr": {"_type": "loguniform", "_value": [1e-6, 1e-5]}}  # however long it trains, it does not diverge
        return self.study(program, search_space=space, **keys)

    def end(self):
        """Lets the trials of until_told() end."""
        (self.dir / "stop").touch()
        wait_for(self.ended, "the study to end")

    def trial(self, index=0):
        return self.export("--service", self.grpc)["trials"][index]

    def start_pool(self, slots, study, options=()):
        self.serve(self.dir / "pool.db", options=("--lease", LEASE_S))
        agent = self.agent(slots, options=options)
        self.run_tuner("submit", study, "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["trials"], "a slot for the first trial")
        return agent

    def ended(self):
        return self.export("--service", self.grpc)["study"]["state"] != "STUDY_RUNNING"

    def two_replicas(self, agent, program="emulated"):
        """Pids of the first trial's replicas, once there are two."""
        self.grow_to_two("--service", self.grpc)
        return two_replicas_of(agent.pid, program)

    def check(self, trial, state="TRIAL_COMPLETE", restarts=0):
        """The trial was started again so often, and no report was lost or came twice."""
        self.assertEqual((trial["state"], trial["restarts"]), (state, restarts))
        steps = [number(v["step"]) for v in trial["values"]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)), "the curve goes on")

    def stop_undisturbed(self, trials=1):
        """Stops trials that would go on for ever: none was started again, and no report was lost or came twice."""
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        paused = lambda: [t["state"] for t in self.export("--service", self.grpc)["trials"]] == ["TRIAL_PAUSED"] * trials
        wait_for(paused, "the trials to leave")
        export = self.export("--service", self.grpc)
        for trial in export["trials"]:
            self.check(trial, "TRIAL_PAUSED")
        return export

    def test_lone_trial_grows_and_no_process_is_restarted(self):
        # One that is slow on a busy machine is not to be let go.
        folder = self.dir / "run"
        study = self.study(self.beside_a_neighbour(folder / "trials/e2e", self.program(ENDLESS, 1024)), search_space=SPACE,
                           trials=2, stragglers="ignore")
        run = self.start("run", study, "--dir", folder, "--slots", 2)
        self.grpc = wait_for(lambda: re.search(r"gRPC ([\d.:]+),", self.output(run)), "the address of gRPC")[1]
        wait_for(lambda: len(self.export("--service", self.grpc)["trials"]) == 2 and self.trial(1)["resizes"],
                 "the trial to grow")
        before = len(self.trial(1)["values"])
        wait_for(lambda: len(self.trial(1)["values"]) > before, "its next report")
        kill(run.pid, signal.SIGINT)
        self.finish(run, 130)
        trial = self.export("--db", folder / "espalier.db")["trials"][1]
        self.check(trial, "TRIAL_PAUSED")
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in trial["resizes"]][0], (1, 2))
        logs = list((folder / "trials/e2e/trial-1").glob("replica-*.log"))
        self.assertEqual(len(logs), 2, "one process a replica, none started again")

    def test_killed_replica_is_survived_and_replaced(self):
        agent = self.start_pool(2, self.until_told(trials=1))
        pids = self.two_replicas(agent, "elastic_probe")
        self.assertTrue(kill(pids[0]))  # rank 0
        wait_for(lambda: any(r["after_loss"] for r in self.trial()["resizes"]), "the survivor to go on")
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before, "its next report")
        self.end()
        self.check(self.trial())

    def test_replicas_train_on_while_their_agent_is_replaced(self):
        agent = self.start_pool(2, self.emulated(ENDLESS, 1024, trials=1))
        pids = self.two_replicas(agent)
        for _ in range(2):
            before = len(self.trial()["values"])
            said = self.run_tuner("agent", "--replace", "--name", "node", "--dir", self.dir / "agent-node").stdout
            self.assertIn(f"process {agent.pid} goes on as release", said)
            wait_for(lambda: len(self.trial()["values"]) > before, "the next report")
            self.assertEqual(replicas_of(agent.pid, "emulated"), pids)
        (trial,) = self.stop_undisturbed()["trials"]
        self.assertFalse([r for r in trial["resizes"] if r["after_loss"]], "nobody was lost")

    def test_slow_replica_moves_to_another_node_without_a_checkpoint(self):
        agent = self.start_pool(2, self.emulated(ENDLESS, 1024, trials=1, slots=2))
        wait_for(lambda: self.trial()["values"], "a report")
        pids = two_replicas_of(agent.pid, "emulated")
        spare = self.agent(1, name="spare")
        wait_for(lambda: "of 3 slots" in self.run_tuner("pool", "--service", self.grpc).stdout, "the other node")

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
        wait_for(lambda: (t := self.trial())["step_time_s"] > 0 and t["memory_bytes"] > 0, "figures of the new group")
        export = self.stop_undisturbed()
        moves = [d["reason"] for d in export["decisions"] if d["kind"] == "move"]
        self.assertRegex(moves[0], r"^replica on node slot \d takes .*x as long a step as the others: "
                                   r"replaced by spare slot 0$")

    def test_stopped_replica_is_noticed_and_replaced(self):
        agent = self.start_pool(2, self.until_told(trials=1), options=("--replica-lease", HUNG_S))
        pids = self.two_replicas(agent, "elastic_probe")
        self.assertTrue(kill(pids[0], signal.SIGSTOP))  # rank 0
        wait_for(lambda: any(r["after_loss"] for r in self.trial()["resizes"]), "the other to go on")
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before, "its next report")
        self.end()
        self.check(self.trial())
        reasons = [d["reason"] for d in self.export("--service", self.grpc)["decisions"]]
        self.assertTrue([r for r in reasons if f"a replica hung: not a word for {HUNG_S}" in r], reasons)

    def test_lone_replica_that_hangs_goes_on_from_its_checkpoint(self):
        agent = self.start_pool(1, self.until_told(trials=1), options=("--replica-lease", HUNG_S))
        wait_for(lambda: self.trial()["checkpoint"], "a checkpoint")
        (pid,) = replicas_of(agent.pid, "elastic_probe")
        self.assertTrue(kill(pid, signal.SIGSTOP))
        wait_for(lambda: self.trial()["restarts"], "the agent to notice")
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before, "its next report")
        self.end()
        self.check(self.trial(), restarts=1)
        reasons = [d["reason"] for d in self.export("--service", self.grpc)["decisions"]]
        self.assertTrue([r for r in reasons if f"hung: not a word for {HUNG_S}" in r], reasons)

    def test_pinned_trial_takes_every_size(self):
        self.start_pool(4, self.emulated(ENDLESS, 2048, trials=1))
        # It may begin with any number, and what it has already is no change.
        self.shrink_to_one("--service", self.grpc)
        for slots in (2, 4, 1, 3):
            self.run_tuner("pin", "e2e", 0, "--slots", slots, "--service", self.grpc)
            wait_for(lambda: self.trial()["slots"] == slots
                     and self.trial()["resizes"][-1:]
                     and self.trial()["resizes"][-1]["to_replicas"] == slots, f"{slots} replicas")
        self.assertEqual(self.trial()["restarts"], 0)

    def test_replica_that_left_is_kept_and_comes_back_without_a_new_process(self):
        agent = self.start_pool(2, self.emulated(ENDLESS, 2048, trials=1))
        pids = self.two_replicas(agent)
        logs = lambda: sorted((self.dir / "agent-node/e2e/trial-0").glob("replica-*.log"))
        before = logs()
        for slots in (1, 2, 1, 2):
            self.run_tuner("pin", "e2e", 0, "--slots", slots, "--service", self.grpc)
            wait_for(lambda: self.trial()["slots"] == slots
                     and self.trial()["resizes"][-1]["to_replicas"] == slots, f"{slots} replicas")
            self.assertEqual(replicas_of(agent.pid, "emulated"), pids)
        self.assertEqual(self.trial()["restarts"], 0)
        self.assertEqual(len(logs()), len(before) + 2, "one for each replica")
        self.assertEqual({log.resolve() for log in logs()}, {log.resolve() for log in before}, "of no new process")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        steps = [number(v["step"]) for v in self.trial()["values"]]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def test_joiner_whose_checkpoint_is_gone_takes_a_newer_one(self):
        # An epoch of 128 samples takes a tenth of a second and two checkpoints are kept: what a joiner
        # is given when it is started has been removed before it has loaded LibTorch.
        self.start_pool(2, self.emulated(ENDLESS, 128, trials=1, slots={"min": 1, "max": 2}))
        # It may be about to begin with two.
        self.run_tuner("pin", "e2e", 0, "--slots", 1, "--service", self.grpc)
        wait_for(lambda: (t := self.trial())["checkpoint"] and t["slots"] == 1, "a checkpoint of one replica")
        decisions = lambda: [d["kind"] for d in self.export("--service", self.grpc)["decisions"]]
        before = len(decisions())
        self.run_tuner("pin", "e2e", 0, "--slots", 2, "--service", self.grpc)
        wait_for(lambda: [r["to_replicas"] for r in self.trial()["resizes"][-1:]] == [2], "the joiner to come in")
        self.assertEqual(self.trial()["restarts"], 0)
        self.assertNotIn("shrink", decisions()[before:], "no joiner was lost")

    def test_replicas_are_forked_where_their_program_makes_its_trial(self):
        agent = self.start_pool(2, self.emulated(ENDLESS, 128, trials=1, env=FORKED), options=("--spare-memory", 0))
        wait_for(lambda: self.trial()["values"], "a report")
        before = len(self.shrink_to_one("--service", self.grpc)["resizes"])
        wait_for(lambda: len(replicas_of(agent.pid, "emulated")) == 1, "one replica")
        (zygote,) = wait_for(lambda: [pid for pid in zygotes_of(agent.pid, "emulated") if name_of(pid) == "zygote"],
                             "a process to be forked")
        old = replicas_of(agent.pid, "emulated")
        self.run_tuner("pin", "e2e", 0, "--slots", 2, "--service", self.grpc)

        def joiner():
            new = [pid for pid in replicas_of(agent.pid, "emulated") if pid not in old]
            return [r["to_replicas"] for r in self.trial()["resizes"][before:][-1:]] == [2] and new

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
        self.start_pool(2, self.until_told(trials=2))
        wait_for(lambda: [len(t["values"]) >= 2 for t in self.export("--service", self.grpc)["trials"]] == [True] * 2,
                 "two epochs of both")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: self.run_tuner("pool", "--service", self.grpc).stdout.startswith("0 of 2 slots"),
                 "all replicas to leave")
        for trial in self.export("--service", self.grpc)["trials"]:
            self.assertEqual(trial["state"], "TRIAL_PAUSED")
            self.assertTrue(trial["checkpoint"])
        before = [len(t["values"]) for t in self.export("--service", self.grpc)["trials"]]
        self.run_tuner("resume", "e2e", "--service", self.grpc)
        wait_for(lambda: all(len(t["values"]) > had for t, had in zip(self.export("--service", self.grpc)["trials"], before)),
                 "the next reports of both")
        self.end()
        for trial in self.export("--service", self.grpc)["trials"]:
            self.check(trial)

    def test_trials_train_on_while_the_service_is_killed(self):
        database = self.dir / "pool.db"
        agent = self.start_pool(2, self.emulated(ENDLESS, 1024, trials=2))
        grpc, http = self.grpc, self.http
        service = self.processes[0]
        reports = lambda: [len(t["values"]) for t in self.export("--service", grpc)["trials"]]
        wait_for(lambda: len(r := reports()) == 2 and min(r) > 0, "a value of both")
        pids = replicas_of(agent.pid, "emulated")
        for _ in range(3):
            kill(service.pid)
            service.wait()
            self.assertEqual(replicas_of(agent.pid, "emulated"), pids)
            service = self.serve(database, grpc, http, ("--lease", LEASE_S))
            have = reports()
            wait_for(lambda: all(now > then for now, then in zip(reports(), have)), "more values of both")
        self.stop_undisturbed(trials=2)

    def test_crashing_program_shows_its_message(self):
        study = self.study([str(BIN / "emulated"), "--profile", "/does/not/exist.json"],
                           trials=9, max_consecutive_failures=2)
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 1)
        self.finish(run, 1)
        self.assertIn("/does/not/exist.json", self.output(run))

    def test_interrupt_with_elastic_trials(self):
        run = self.start("run", self.emulated(ENDLESS, 2048, trials=2), "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: len(replicas_of(run.pid, "emulated")) == 2, "two trials")
        for trial in (0, 1):
            wait_for((self.dir / f"run/trials/e2e/trial-{trial}/checkpoints").exists, "a checkpoint")
        kill(run.pid, signal.SIGINT)
        self.finish(run, 130)
        states = [t["state"] for t in self.export("--db", self.dir / "run/espalier.db")["trials"]]
        self.assertEqual(states, ["TRIAL_PAUSED"] * 2)


if __name__ == "__main__":
    unittest.main()
