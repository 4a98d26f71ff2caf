"""A service, agents and clients as separate processes, and what survives their deaths."""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import unittest
import urllib.request

from harness import LEASE_S, TunerTest, kill, replicas_of, tuner_command, wait_for

# Writes down each value only after the service has acknowledged it.
ACKNOWLEDGED = """#!/bin/bash
echo $$ >> {log}.pids-of-$ESPALIER_TRIAL_NUMBER
step=0
while [ $step -lt {steps} ] || {further}; do
  step=$((step + 1))
  until tuner tell --step $step --value 0.$step --timeout 1 2>/dev/null; do sleep 0.05; done
  echo $step >> {log}/$ESPALIER_TRIAL_NUMBER
  sleep {pause}
done
"""


class Service(TunerTest):
    def script(self, steps, pause, further="false"):
        """A trial makes so many steps, and further ones for as long as that command says."""
        log = self.dir / "acknowledged"
        log.mkdir(exist_ok=True)
        return self.write("trial.sh", ACKNOWLEDGED.format(steps=steps, log=log, pause=pause, further=further), 0o755)

    def acknowledged(self):
        return {int(f.name): [int(s) for s in f.read_text().split()]
                for f in (self.dir / "acknowledged").iterdir()}

    def test_submit_to_a_service_with_two_agents(self):
        service = self.serve(self.dir / "pool.db")
        self.agent(1, "a")
        self.agent(1, "b")
        wait_for(lambda: "of 2 slots" in self.run_tuner("pool", "--service", self.grpc).stdout, "both agents")
        study = self.study([self.script(2, 0.3)], trials=6)
        self.run_tuner("submit", study, "--service", self.grpc, "--wait")
        record = self.export("--service", self.grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 6)
        nodes = {s["slots"][0]["node_id"] for t in record["trials"] for s in t["spans"]}
        self.assertEqual(len(nodes), 2, "both agents had work")
        self.assertIn("e2e", self.run_tuner("ls", "--service", self.grpc).stdout)
        self.run_tuner("show", "nothing", "--service", self.grpc, code=4)
        self.assertIsNone(service.poll())

    def test_one_submit_parses_the_study_once(self):
        database = self.dir / "pool.db"
        service = self.serve(database)
        self.assertEqual(self.texts_parsed(), 0)
        self.run_tuner("submit", self.study(["/bin/true"]), "--service", self.grpc)
        self.assertEqual(self.texts_parsed(), 1)
        for verb in (["ls"], ["show", "e2e"]):
            self.run_tuner(*verb, "--service", self.grpc)
        self.assertEqual(self.texts_parsed(), 1, "who looks at it parses nothing")
        service.kill()
        service.wait()  # until then it has the database
        self.serve(database)
        self.assertEqual(self.texts_parsed(), 1, "it is read from the database once")

    def texts_parsed(self):
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            return int(re.search(r"^espalier_study_texts_parsed_total (\d+)", answer.read().decode(), re.MULTILINE)[1])

    def test_a_study_says_that_no_machine_is_there_until_one_is(self):
        service = self.serve(self.dir / "pool.db")
        join = f"to join: tuner agent --join {self.grpc} --slots N\n"
        wait_for(lambda: join in self.output(service), "the service to say how machines join it")
        study = self.study([self.script(1, 0, f"[ ! -e {self.dir}/over ]")], trials=1)
        nobody = ("no machine is in the pool: have one join it by tuner agent --join HOST:PORT, as the service prints it "
                  "when it starts")
        self.assertIn(nobody, self.run_tuner("submit", study, "--service", self.grpc).stderr)
        show = lambda: self.run_tuner("show", "e2e", "--service", self.grpc).stdout
        self.assertIn(f"note: {nobody}", show())
        self.agent(1)
        wait_for(lambda: "note: " not in show(), "the notice to be gone")
        (self.dir / "over").touch()

    def test_a_command_that_is_started_again_is_told_its_last_step(self):
        script = self.write("trial.sh", f"#!/bin/sh\necho ${{ESPALIER_LAST_STEP:-none}} >> {self.dir}/starts\n"
                            f"tuner tell --step 4 --value 1\nuntil [ -e {self.dir}/over ]; do sleep 0.05; done\n", 0o755)
        self.serve(self.dir / "pool.db")
        self.agent(1)
        self.run_tuner("submit", self.study([script], trials=1), "--service", self.grpc)
        trials = lambda: self.export("--service", self.grpc)["trials"]
        wait_for(lambda: trials() and trials()[0].get("values"), "the first value")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: not trials()[0]["slots"], "the slot to be given back")
        self.run_tuner("resume", "e2e", "--service", self.grpc)
        starts = lambda: (self.dir / "starts").read_text().split()
        wait_for(lambda: len(starts()) == 2, "the second start")
        self.assertEqual(starts(), ["none", "4"])
        (self.dir / "over").touch()

    def test_a_study_like_another_learns_from_it_whatever_becomes_of_that(self):
        """Of a bowl around x = 0.25, and then of one that is 1,000 times as deep."""
        told = "awk -v x=$ESPALIER_PARAM_X 'BEGIN { print %d * (x - 0.25) ^ 2 }'"
        script = self.write("trial.sh", f"#!/bin/sh\ntuner tell --step 1 --value $({told % 1})\n", 0o755)
        deep = self.write("deep.sh", f"#!/bin/sh\ntuner tell --step 1 --value $({told % 1000})\n", 0o755)
        service = self.serve(self.dir / "pool.db")
        where = ("--service", self.grpc)
        self.agent(4)
        self.run_tuner("submit", self.study([script], name="first", trials=24, sampler="qmc"), "--wait", *where)
        study = self.study([deep], name="second", trials=4, sampler="tpe")
        for options, why in ((["--like", "frist"], 'there is no study "frist"'), (["--like", "second"], "second")):
            self.assertIn(why, self.run_tuner("submit", study, *where, *options, code=2).stderr)
        text = 'learns from 24 of the 24 ended trials of study "first"'
        self.assertIn(f"it {text}", self.run_tuner("submit", study, "--like", "first", *where).stdout)
        wait_for(lambda: self.export(*where, study="second")["study"]["state"] == "STUDY_COMPLETE", "its end")
        self.run_tuner("rm", "first", *where)
        service.kill()
        service.wait()
        self.serve(self.dir / "pool.db", self.grpc, self.http)
        self.assertIn(text, self.run_tuner("show", "second", *where).stdout)
        record = json.loads(self.run_tuner("show", "second", "--json", *where).stdout)
        drawn = [json.loads(each["json"]) for trial in record["trials"] for each in trial["parameters"]]
        self.assertLess(sum(abs(x - 0.25) for x in drawn) / 4, 0.15)
        self.assertEqual(len(json.loads(record["study"]["study_json"])["like"]["trials"]), 24)

    def test_stop_and_resume(self):
        self.serve(self.dir / "pool.db")
        self.agent(2)
        study = self.study([self.script(4, 0.2, f"[ ! -e {self.dir}/over ]")], trials=6)
        self.run_tuner("submit", study, "--service", self.grpc)
        wait_for(lambda: self.acknowledged(), "the first value")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: not any(t["slots"] for t in self.export("--service", self.grpc)["trials"]),
                 "all slots to be given back")
        record = self.export("--service", self.grpc)
        self.assertEqual(record["study"]["state"], "STUDY_STOPPED")
        (self.dir / "over").touch()
        self.run_tuner("resume", "e2e", "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE",
                 "the study to end")
        again = self.run_tuner("resume", "e2e", "--service", self.grpc, code=1)
        self.assertIn("study e2e does not go on: it is COMPLETE (all 6 trials have ended)", again.stderr)

    def test_service_killed_twenty_times_loses_nothing_acknowledged(self):
        database = self.dir / "pool.db"
        lease = ("--lease", LEASE_S)
        service = self.serve(database, options=lease)
        grpc, http = self.grpc, self.http
        agent = self.agent(2)
        # The first two end amid the kills, and the others begin there, which go on until all kills are over.
        further = f"[ $ESPALIER_TRIAL_NUMBER -ge 2 -a ! -e {self.dir}/over ]"
        study = self.study([self.script(15, 0.1, further)], trials=4)
        self.run_tuner("submit", study, "--service", grpc)
        seen = 0
        for _ in range(20):
            # Each time in the middle of something: some more values since the last kill.
            target = seen + 2
            wait_for(lambda: sum(map(len, self.acknowledged().values())) >= target, "more values")
            seen = sum(map(len, self.acknowledged().values()))
            kill(service.pid)
            service.wait()
            before = self.acknowledged()
            service = self.serve(database, grpc, http, lease)
            stored = {int(t["number"]): {int(v["step"]) for v in t["values"]}
                      for t in self.export("--service", grpc)["trials"]}
            for number, steps in before.items():
                self.assertLessEqual(set(steps), stored[number], f"trial {number}")
        (self.dir / "over").touch()
        wait_for(lambda: self.export("--service", grpc)["study"]["state"] == "STUDY_COMPLETE",
                 "the study to end")
        record = self.export("--service", grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 4)
        self.assertEqual([t["restarts"] for t in record["trials"]], [0] * 4)
        self.assertIsNone(agent.poll())
        # Spans do not count them: a service that is killed before it has told its agent of a trial gives the trial
        # its slots once more, and nothing has run in the first span.
        processes = {f.name: f.read_text().split() for f in self.dir.glob("acknowledged.pids-of-*")}
        self.assertEqual([len(pids) for pids in processes.values()], [1] * 4,
                         f"the trials ran on in their processes while the service was gone: {processes}")

    def test_killed_run_is_taken_up_again(self):
        study = self.study([self.script(10, 0.1, f"[ ! -e {self.dir}/over ]")], trials=4)
        arguments = ("run", study, "--dir", self.dir / "run", "--slots", 2)
        for _ in range(3):
            have = sum(map(len, self.acknowledged().values()))
            run = self.start(*arguments)
            wait_for(lambda: sum(map(len, self.acknowledged().values())) > have + 2, "some values")
            second = self.run_tuner(*arguments, code=2).stderr
            self.assertIn(f"study e2e is running already (process {run.pid}): follow it with `tuner watch e2e --dir",
                          second)
            kill(run.pid)
            run.wait()
            wait_for(lambda: not replicas_of(1, str(self.dir)), "no trial outlives its agent")
        other = self.write("other.json", {**json.loads(pathlib.Path(study).read_text()), "name": "other"})
        refused = self.run_tuner("run", other, *arguments[2:], code=2).stderr
        self.assertIn("holds another study, e2e, that was cut off while it ran", refused)
        (self.dir / "over").touch()
        self.run_tuner(*arguments)
        record = self.export("--db", self.dir / "run/espalier.db")
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 4)

    def test_clients_that_follow_a_study_outlast_the_service(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(end):
                shutil.rmtree(self.dir / "acknowledged", ignore_errors=True)
                over = self.dir / f"over-{end.name}"
                database = self.dir / f"{end.name}.db"
                service = self.serve(database)
                grpc, http = self.grpc, self.http
                agent = self.agent(1, end.name)
                study = self.study([self.script(2, 0.1, f"[ ! -e {over} ]")], trials=1)
                followers = [self.start("submit", study, "--service", grpc, "--wait")]
                wait_for(lambda: self.acknowledged(), "the first value")
                wait_for(lambda: "study e2e submitted" in self.output(followers[0]), "its submitter to know of it")
                followers.append(self.start("watch", "e2e", "--service", grpc))
                wait_for(lambda: self.output(followers[1]), "the other to follow it too")
                kill(service.pid, end)
                service.wait()
                for follower in followers:
                    wait_for(lambda: "is away; waiting for it" in self.output(follower), "them to see it")
                again = self.serve(database, grpc, http)
                over.touch()
                for follower in followers:
                    self.finish(follower)
                    self.assertIn("study e2e COMPLETE", self.output(follower))
                kill(agent.pid, signal.SIGTERM)
                agent.wait()
                kill(again.pid, signal.SIGTERM)
                again.wait()

    def test_lost_agent_gives_its_trials_to_others(self):
        self.serve(self.dir / "pool.db")
        first = self.agent(2, "first")
        study = self.study([self.script(5, 0.2)], trials=4)
        self.run_tuner("submit", study, "--service", self.grpc)
        wait_for(lambda: self.acknowledged(), "the first value")
        kill(first.pid)
        self.agent(2, "second")
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE",
                 "the study to end on the second agent")
        record = self.export("--service", self.grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 4)

    def test_signals_that_nohup_ignores_end_nothing(self):
        ignored = {"preexec_fn": lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGHUP, signal.SIGINT)]}
        self.grpc, self.http = self.held_address(), self.held_address()
        service = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "pool.db", **ignored)
        self.wait_service(service)
        agent = self.agent(1, "kept", **ignored)
        # One whose terminal has gone takes it for a notice as well: it reads its program again.
        wait_for(lambda: "is number 1 of the pool" in self.output(agent), "the agent to join")
        for number in (signal.SIGHUP, signal.SIGINT):
            kill(service.pid, number)
        for replacements in (1, 2):
            kill(agent.pid, signal.SIGHUP)
            wait_for(lambda: self.output(agent).count("node kept with 1 slot joins") == 1 + replacements,
                     "the agent to become its program anew")
        kill(agent.pid, signal.SIGINT)
        self.run_tuner("submit", self.study([self.script(1, 0)], trials=1), "--service", self.grpc, "--wait")
        self.assertEqual([agent.poll(), service.poll()], [None, None])
        for process in (agent, service):
            for _ in range(2):  # as `timeout` sends it: to the process, and to its group
                kill(process.pid, signal.SIGTERM)
            self.assertEqual(process.wait(), 0, self.output(process))

    def test_what_cannot_be_printed_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(tuner_command("plugins"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "tuner: cannot write to stdout: No space left on device\n"))

    def test_a_study_with_the_name_of_a_removed_one_begins_anew(self):
        self.serve(self.dir / "pool.db")
        self.agent(1)
        script = self.write("trial.sh", "#!/bin/sh\nls $ESPALIER_CHECKPOINT_DIR; echo of seed $1\n"
                            "touch $ESPALIER_CHECKPOINT_DIR/ck; tuner tell --final --value 1 >/dev/null\n", 0o755)
        for seed in ("1", "2"):
            study = self.study([script, seed], trials=1, seed=int(seed))
            self.run_tuner("submit", study, "--service", self.grpc, "--wait")
            self.assertEqual(self.run_tuner("logs", "e2e", 0, "--service", self.grpc).stdout, f"of seed {seed}\n")
            wait_for(lambda: not any(t["slots"] for t in self.export("--service", self.grpc)["trials"]),
                     "the slot to be given back")
            self.run_tuner("rm", "e2e", "--service", self.grpc)
        folders = sorted(path.name for path in (self.dir / "agent-node/e2e").iterdir())
        self.assertEqual(len(folders), 2, folders)
        self.assertRegex(folders[1], r"^trial-0\.old-1-\d+$")


if __name__ == "__main__":
    unittest.main()
