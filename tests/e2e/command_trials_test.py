"""`tuner run` with programs that know nothing of Espalier."""
import json
import re
import signal
import unittest
import urllib.request

from harness import ROOT, TunerTest, kill, replicas_of, wait_for

# Tells `steps` values (x + 1/step) and ends; a step takes `pause` seconds.
SCRIPT = """#!/bin/sh
for step in $(seq 1 {steps}); do
  tuner tell --step $step --value $(awk "BEGIN {{print $ESPALIER_PARAM_X + 1 / $step}}") || exit 9
  {pause}
done
"""


class RunCommands(TunerTest):
    def script(self, steps=3, pause=":"):
        return self.write("trial.sh", SCRIPT.format(steps=steps, pause=pause), 0o755)

    def test_example_runs_to_its_end(self):
        study = ROOT / "examples/any_command/study.json"
        done = self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 4,
                              env={"EPOCH_TIME_S": "0.01"})
        self.assertIn("best", done.stdout.lower())
        record = self.export("--db", self.dir / "run/espalier.db", study="any_command")
        states = [t["state"] for t in record["trials"]]
        self.assertEqual(len(states), 16)
        self.assertTrue(set(states) <= {"TRIAL_COMPLETE", "TRIAL_PRUNED"}, states)
        for trial in record["trials"]:
            self.assertGreaterEqual(len(trial["values"]), 1)
        report = (self.dir / "run/report.html").read_text()
        self.assertIn('id="record"', report)

    def test_parameters_come_by_variable_and_file(self):
        script = self.write("trial.sh", '#!/bin/sh\ncp "$ESPALIER_PARAMETERS" "%s/$ESPALIER_TRIAL_NUMBER.json"\n'
                            'tuner tell --final --value "$ESPALIER_PARAM_X"\n' % self.dir, 0o755)
        self.run_tuner("run", self.study([script]), "--dir", self.dir / "run", "--slots", 2)
        for trial in self.export("--db", self.dir / "run/espalier.db")["trials"]:
            parameters = json.loads((self.dir / f"{trial['number']}.json").read_text())
            self.assertEqual(parameters, {p["name"]: json.loads(p["json"]) for p in trial["parameters"]})
            self.assertAlmostEqual(trial["value"], parameters["x"], places=12)

    def test_a_job_has_no_metric_and_says_nothing_of_one(self):
        study = self.write("job.json", json.dumps({"name": "job", "command": ["true"], "metric": False}))
        said = self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2).stdout
        self.assertIn("running study job on 2 slots\n", said)
        self.assertNotIn("minimizing", said)
        self.assertEqual([t["state"] for t in self.export("--db", self.dir / "run/espalier.db", study="job")["trials"]],
                         ["TRIAL_COMPLETE"])

    def test_what_others_could_read_is_said(self):
        said = {}
        for address in ("127.0.0.1:0", "0.0.0.0:0"):
            done = self.run_tuner("run", self.study([self.script()]), "--dir", self.dir / "run", "--fresh", "--slots", 2,
                                  "--grpc", address, "--plaintext", "--token-file", self.write("token", "secret"))
            said[address] = "in the clear: tokens and commands can be read" in done.stdout
        self.assertEqual(said, {"127.0.0.1:0": False, "0.0.0.0:0": True})

    def test_nested_choices_come_as_objects_and_their_parameters_by_variables(self):
        script = self.write("trial.sh", '#!/bin/sh\ncp "$ESPALIER_PARAMETERS" "%s/$ESPALIER_TRIAL_NUMBER.json"\n'
                            'tuner tell --final --value "${ESPALIER_PARAM_OPTIMIZER_SGD_MOMENTUM:-2}"\n' % self.dir,
                            0o755)
        space = {"optimizer": {"_type": "choice", "_value": [
            {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "adam"}]}}
        study = self.study([script], trials=8, search_space=space, sampler={"name": "tpe", "startup_trials": 4})
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2)
        seen = set()
        for trial in self.export("--db", self.dir / "run/espalier.db")["trials"]:
            flat = {p["name"]: json.loads(p["json"]) for p in trial["parameters"]}
            given = json.loads((self.dir / f"{trial['number']}.json").read_text())["optimizer"]
            self.assertEqual(given.pop("_name"), flat.pop("optimizer"))
            self.assertEqual(given, {name.removeprefix("optimizer/sgd/"): value for name, value in flat.items()})
            self.assertEqual(trial["value"], given.get("momentum", 2))
            seen.add(len(given))
        self.assertEqual(seen, {0, 1})

    def test_values_by_http(self):
        script = self.write("trial.sh", '#!/bin/sh\ncurl -sf -d "{\\"step\\": 1, \\"value\\": 0.5}" '
                            '"$ESPALIER_HTTP/api/trials/$ESPALIER_TRIAL_ID/tell"\n', 0o755)
        self.run_tuner("run", self.study([script]), "--dir", self.dir / "run", "--slots", 2)
        for trial in self.export("--db", self.dir / "run/espalier.db")["trials"]:
            self.assertEqual((trial["state"], trial["value"]), ("TRIAL_COMPLETE", 0.5))

    def test_a_step_that_is_told_again_is_ignored_and_tell_says_so(self):
        script = self.write("trial.sh", f"#!/bin/sh\ntuner tell --step 1 --value 0.5 2> {self.dir}/first\n"
                            f"tuner tell --step 1 --value 0.7 2> {self.dir}/second\n", 0o755)
        self.run_tuner("run", self.study([script], trials=1), "--dir", self.dir / "run", "--slots", 1)
        self.assertEqual((self.dir / "first").read_text(), "")
        self.assertEqual((self.dir / "second").read_text(),
                         "tuner tell: step 1 was already told as 0.5; this value is ignored\n")

    def test_crash_is_fail_with_its_last_words_and_the_limit_stops_the_study(self):
        script = self.write("trial.sh", "#!/bin/sh\necho about to break >&2\nexit 3\n", 0o755)
        done = self.run_tuner("run", self.study([script], trials=20, max_consecutive_failures=3),
                              "--dir", self.dir / "run", "--slots", 1, code=1)
        self.assertIn("about to break", done.stdout + done.stderr)
        record = self.export("--db", self.dir / "run/espalier.db")
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_FAIL"] * 3)
        self.assertEqual(record["study"]["state"], "STUDY_FAILED")
        self.assertIn("code 3", record["trials"][0]["reason"])
        self.assertIn("about to break", record["trials"][0]["last_output"])

    def test_a_study_whose_trials_all_failed_has_failed_and_goes_on_with_more(self):
        script = self.write("trial.sh", f'#!/bin/sh\n[ ! -e {self.dir}/mended ] || tuner tell --final --value 1\n', 0o755)
        done = self.run_tuner("run", self.study([script], trials=2), "--dir", self.dir / "run", "--slots", 1, code=1)
        self.assertIn('all 2 trials failed; the last: ended without reporting "loss"', done.stdout)
        (self.dir / "mended").touch()
        self.serve(self.dir / "run/espalier.db")
        self.agent(1)
        self.run_tuner("resume", "e2e", "--trials", 3, "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE", "the study to end")

    def test_one_crash_does_not_end_the_study(self):
        script = self.write("trial.sh", '#!/bin/sh\n[ "$ESPALIER_TRIAL_NUMBER" = 1 ] && exit 3\n'
                            "tuner tell --final --value 1\n", 0o755)
        self.run_tuner("run", self.study([script]), "--dir", self.dir / "run", "--slots", 1)
        states = [t["state"] for t in self.export("--db", self.dir / "run/espalier.db")["trials"]]
        self.assertEqual(states.count("TRIAL_COMPLETE"), 3)
        self.assertEqual(states[1], "TRIAL_FAIL")

    def test_pruned_trial_is_ended_also_if_it_ignores_sigterm(self):
        # The best is the first to report, or none would be worse than those before it. Who is told to end goes on for
        # ever, if it comes to hear of it before it is killed; the others end once one has been pruned.
        script = self.write("trial.sh", f"""#!/bin/sh
trap 'told=yes' TERM
until [ $ESPALIER_TRIAL_NUMBER = 0 ] || [ -e {self.dir}/first ]; do sleep 0.05; done
for step in 1 2 3 4; do tuner tell --step $step --value $ESPALIER_TRIAL_NUMBER; done
touch {self.dir}/first
while [ "$told" ] || [ ! -e {self.dir}/over ]; do sleep 0.05; done
""", 0o755)
        study = self.study([script], trials=3, pruner={"name": "asha", "min_steps": 1, "eta": 2},
                           stop_grace_s=0.2)
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 3)
        wait_for((self.dir / "first").exists, "the best to have reported")
        wait_for(lambda: "TRIAL_PRUNED" in [t["state"] for t in self.export("--dir", self.dir / "run")["trials"]],
                 "a trial to be pruned")
        (self.dir / "over").touch()
        self.finish(run)
        record = self.export("--db", self.dir / "run/espalier.db")
        self.assertIn("TRIAL_PRUNED", [t["state"] for t in record["trials"]])
        for trial in record["trials"]:
            self.assertNotEqual(trial["spans"][-1]["to"], 0)

    def test_interrupt_stops_cleanly_and_run_again_resumes(self):
        # None is at its end before the interrupt.
        pause = f"until [ -e {self.dir}/interrupted ]; do sleep 0.05; done"
        study = self.study([self.script(steps=5, pause=pause)], trials=6)
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 2)
        wait_for(lambda: replicas_of(run.pid, "trial.sh"), "a running trial")
        kill(run.pid, signal.SIGINT)
        self.finish(run, 130)
        self.assertIn("to continue: tuner run", self.output(run))
        record = self.export("--db", self.dir / "run/espalier.db")
        self.assertEqual(record["study"]["state"], "STUDY_STOPPED")
        self.assertNotIn("TRIAL_RUNNING", [t["state"] for t in record["trials"]])
        (self.dir / "interrupted").touch()
        self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2)
        record = self.export("--db", self.dir / "run/espalier.db")
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * 6)
        self.assertEqual([v["step"] for v in record["trials"][0]["values"]],
                         [str(s) if isinstance(record["trials"][0]["values"][0]["step"], str) else s
                          for s in range(1, 6)])

    def test_another_definition_under_the_same_name_is_refused(self):
        script = self.script(steps=1)
        self.run_tuner("run", self.study([script]), "--dir", self.dir / "run", "--slots", 2)
        changed = self.study([script], sampler="random", seed=9)
        done = self.run_tuner("run", changed, "--dir", self.dir / "run", code=2)
        self.assertIn("--fresh", done.stderr)

    def test_in_memory_nothing_of_another_run_is_taken_or_changed(self):
        run = self.dir / "run"
        script = self.write("trial.sh", "#!/bin/sh\nls $ESPALIER_CHECKPOINT_DIR; touch $ESPALIER_CHECKPOINT_DIR/ck\n"
                            "tuner tell --final --value 1 >/dev/null\n", 0o755)
        arguments = ("run", self.study([script], trials=1), "--dir", run, "--slots", 1)
        self.run_tuner(*arguments)
        report = (run / "report.html").stat().st_mtime_ns
        for _ in range(2):
            done = self.run_tuner(*arguments, "--memory")
            self.assertIn(f"report: {run}/memory/report.html", done.stdout)
            logs = list((run / "memory/trials/e2e/trial-0").glob("replica-*.log"))
            self.assertEqual([log.read_text() for log in logs], [""])
        self.assertEqual((run / "report.html").stat().st_mtime_ns, report)
        self.assertEqual(self.run_tuner("logs", "e2e", 0, "--dir", run).stdout, "")

    def test_http_listener(self):
        study = self.study([self.script(steps=100_000, pause="sleep 0.1")], trials=1)
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 1, "--http", "127.0.0.1:0")
        address = wait_for(lambda: re.search(r"HTTP (http://\S+)\n", self.output(run)), "the address of HTTP")[1]

        def get(path):
            with urllib.request.urlopen(address + path, timeout=60) as answer:
                return answer.read().decode()

        def reported():
            try:
                return int(json.loads(get("/api/studies/e2e"))["trials"][0]["step"]) >= 2
            except (OSError, LookupError):
                return False

        wait_for(reported, "two values by HTTP")
        self.assertTrue(get("/healthz"))
        metrics = get("/metrics")
        self.assertRegex(metrics, re.compile(r"^espalier_\w*slots\w*(\{.*\})? 1", re.M))
        self.assertRegex(metrics, re.compile(r"^espalier_study_texts_parsed_total 1$", re.M), "as its file is read")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            get("/api/studies/nothing")
        self.assertEqual(caught.exception.code, 404)
        kill(run.pid, signal.SIGINT)
        self.finish(run, 130)


if __name__ == "__main__":
    unittest.main()
