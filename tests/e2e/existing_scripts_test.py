"""`tuner run` with scripts that know nothing of it: parameters in their command, values from what they print."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest
import urllib.error
import urllib.request

from harness import PATIENCE_S, ROOT, TunerTest, tuner_command, wait_for

SPACE = {"x": {"_type": "quniform", "_value": [1, 9, 1]},
         "kind": {"_type": "choice", "_value": [{"_name": "plain"},
                                                {"_name": "deep", "layers": {"_type": "choice", "_value": [2, 3]}}]}}
# Never flushes, and stays until it is told to end.
STAYS = """import sys, time
print("Epoch 1/2\\r\\033[32mloss=%s\\033[0m" % sys.argv[1])
while True:
    time.sleep(100)
"""

# Trial 0 ends when trial 1 has done three steps. Trial 1 keeps its step when it is told to end, and ends by itself when it
# has done three on two slots.
RESTARTS = """import os, pathlib, signal, sys, time
here, me, slots = pathlib.Path(sys.argv[1]), os.environ["ESPALIER_TRIAL_NUMBER"], os.environ["ESPALIER_SLOTS"]
log, kept = here / "log", pathlib.Path(os.environ["ESPALIER_CHECKPOINT_DIR"]) / "kept"
lines = lambda: log.read_text().splitlines() if log.exists() else []
step = int(kept.read_text()) if me == "1" and kept.exists() else 0
def leave(*_):
    kept.write_text(str(step))
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
while step < 10000:
    step += 1
    print("step", step, "loss=%g" % (1 / step), flush=True)
    if me == "1":
        log.write_text(log.read_text() + f"{step} {slots}\\n" if log.exists() else f"{step} {slots}\\n")
    if len(lines()) >= 3 and (me == "0" or sum(line.endswith(" 2") for line in lines()) >= 3):
        sys.exit(0)
    time.sleep(0.1)
"""


class ExistingScripts(TunerTest):
    def run_study(self, study, code=0):
        self.said = self.run_tuner("run", study, "--dir", self.dir / "run", "--slots", 2, code=code)
        name = json.loads(pathlib.Path(study).read_text())["name"]
        return self.export("--db", self.dir / "run/espalier.db", study=name)

    def test_the_example_is_tuned_by_its_options_and_its_output(self):
        script = (ROOT / "examples/argparse/train.py").read_text()
        self.assertNotIn("espalier", script.lower())
        record = self.run_study(ROOT / "examples/argparse/study.json")
        self.assertEqual(record["study"]["state"], "STUDY_COMPLETE")
        self.assertEqual(len(record["trials"]), 16)
        kinds = set()
        for trial in record["trials"]:
            self.assertIn(trial["state"], ("TRIAL_COMPLETE", "TRIAL_PRUNED"))
            steps = [int(value["step"]) for value in trial["values"]]
            self.assertEqual(steps, list(range(1, len(steps) + 1)))
            if trial["state"] == "TRIAL_COMPLETE":
                self.assertEqual(len(steps), 12)
                self.assertEqual(trial["value"], trial["values"][-1]["value"])
            given = {p["name"]: json.loads(p["json"]) for p in trial["parameters"]}
            expected = ["python3", "train.py", "--lr", json.dumps(given["lr"]), "--degree", str(int(given["degree"]))]
            expected += ["--nesterov"] if given["nesterov"] else []
            if given["optimizer"] == "momentum":
                expected += ["--momentum", json.dumps(given["optimizer/momentum/momentum"])]
            kinds.add((given["nesterov"], given["optimizer"]))
            self.assertEqual(trial["command"], expected + ["--seed", str(1 + int(trial["number"]))])
            log = self.run_tuner("logs", "argparse", trial["number"], "--dir", self.dir / "run").stdout.splitlines()
            self.assertEqual([line.split("val_loss=")[1] for line in log[:len(steps)]],
                             ["%.5f" % value["value"] for value in trial["values"]])
        self.assertGreater(len(kinds), 2)
        shown = self.run_tuner("show", "argparse", "--trial", 0, "--dir", self.dir / "run").stdout
        self.assertIn("python3 train.py --lr ", shown)

    def test_the_readme_runs_as_pasted(self):
        [block] = [block for block in re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
                   if "tuner run" in block]
        folder = pathlib.Path(tuner_command("run")[0]).parent
        done = subprocess.run(["bash", "-e"], input=block, cwd=self.dir, text=True, capture_output=True, timeout=PATIENCE_S,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "best trial [0-9]+: lowest loss ")
        self.assertIn("<html", (self.dir / "report-study.html").read_text())

    def test_a_shell_completes_its_command_lines(self):
        program, *_ = tuner_command("completion")

        def completed(*words):
            script = (f"source <({shlex.quote(program)} completion bash); COMP_WORDS=({shlex.join([program, *words])}); "
                      f"COMP_CWORD={len(words)}; _tuner; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
            return subprocess.run(["bash", "-c", script], text=True, capture_output=True, check=True).stdout.split()
        self.assertEqual(completed("comp"), ["completion"])
        self.assertIn("--slots", completed("run", "study file.json", "--slo"))
        self.assertEqual(completed("export", "--format", ""), ["csv", "json"])
        self.assertEqual(completed("run", "stu"), [], "bash then offers files")
        self.assertIn("bash, zsh or fish", self.run_tuner("completion", "tcsh", code=2).stderr)

    def test_a_study_that_was_asked_for_runs(self):
        script = self.write("first.py", "import sys\nprint('epoch 1 loss=' + sys.argv[2])\n")
        study, run = self.dir / "first.json", self.dir / "run"
        answers = [f"python3 {script}", "x", "1 to 9", "yes", "no", "", "-", "", "", "epoch 1 loss=VALUE", "3"]
        init = lambda given: subprocess.run(tuner_command("init", study), input="\n".join([*given, ""]), text=True,
                                            capture_output=True, timeout=PATIENCE_S)
        cut_off = init(answers[:-1])
        self.assertEqual((cut_off.returncode, study.exists()), (2, False), cut_off.stderr)
        self.assertIn("nothing is written", cut_off.stderr)
        self.assertIn(f"tuner run {study}", init(answers).stdout)
        self.assertIn("--force", init(answers).stderr)
        self.run_tuner("run", study, "--dir", run, "--slots", 2)
        trials = self.export("--db", run / "espalier.db", study="first")["trials"]
        self.assertEqual([t["value"] for t in trials], [json.loads(t["parameters"][0]["json"]) for t in trials])
        self.assertEqual(len(trials), 3)

    def test_a_value_counts_while_its_program_keeps_its_output(self):
        study = self.study(["python3", self.write("stays.py", STAYS), "{x}"], search_space=SPACE, target=100,
                           metric={"name": "loss", "from_output": "^loss=([0-9.]+)$"})
        record = self.run_study(study)
        self.assertIn("reached the target", record["study"]["reason"])

    def test_a_script_that_keeps_its_step_is_started_again_on_two_slots_when_the_other_has_ended(self):
        study = self.study(["python3", self.write("restarts.py", RESTARTS), str(self.dir)], trials=2, slots=[1, 2],
                           resize="restart", metric={"name": "loss", "from_output": "step (?P<step>[0-9]+) loss=(.*)"})
        record = self.run_study(study)
        done = [tuple(map(int, line.split())) for line in (self.dir / "log").read_text().splitlines()]
        self.assertEqual([step for step, _ in done], list(range(1, len(done) + 1)), "no step is lost or done twice")
        self.assertEqual([slots for _, slots in done], [1] * (len(done) - 3) + [2] * 3)
        trial = record["trials"][1]
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in trial["resizes"]], [(1, 2)])
        shown = self.run_tuner("show", "e2e", "--trial", 1, "--dir", self.dir / "run").stdout
        self.assertIn("the restart on 2 slots instead of 1 cost", shown)

    def test_sizes_that_one_machine_cannot_hold_are_refused_before_anything_runs(self):
        for keys, words in (({"slots": [4, 8]}, "needs at least 4 slots a trial, but there are only 2"),
                            ({"slots": [2, 4], "slots_per_node": 1},
                             'needs at least 2 slots a trial, of which "slots_per_node" allows 1 on one machine')):
            said = self.run_tuner("run", self.study(["true"], **keys), "--dir", self.dir / "run", "--slots", 2, code=2)
            self.assertIn(words, said.stderr)

    def test_a_value_counts_while_its_program_goes_on_writing_its_file(self):
        script = self.write("writes.sh", """#!/bin/sh
echo '{"step": 3, "eval": {"loss": "nan"}}' > "$1/log-$2.jsonl"
echo '{"step": 4, "eval": {"loss": '$2'}}' >> "$1/log-$2.jsonl"
exec sleep 1000
""", 0o755)
        study = self.study([script, "{trial_dir}", "{x}"], search_space=SPACE, target=100,
                           metric={"name": "loss", "from_file": {"path": "log-{x}.jsonl", "value": "eval.loss"}})
        record = self.run_study(study)
        self.assertIn("reached the target", record["study"]["reason"])
        [ended] = [trial for trial in record["trials"] if trial["state"] == "TRIAL_COMPLETE"]
        self.assertEqual([int(value["step"]) for value in ended["values"]], [3, 4])

    def test_no_value_is_a_failure_that_shows_what_was_written(self):
        study = self.study(["sh", "-c", "mkdir $0/runs; echo 1 > $0/runs/log", "{trial_dir}"], search_space=SPACE, trials=1,
                           metric={"name": "loss", "from_tensorboard": {"folder": "runs", "tag": "loss"}})
        record = self.run_study(study, code=1)
        self.assertRegex(record["trials"][0]["reason"], 'nothing that it wrote has a value by "from_tensorboard": "loss"; '
                                                        "/.*/trial-0/runs has no scalar in files of events")

    def test_a_run_shows_its_study_on_an_installed_dashboard(self):
        package = self.dir / "packages/optuna_dashboard"
        (package / "public").mkdir(parents=True)
        (package / "__init__.py").write_text("raise ImportError('it need not be imported')")
        (package / "index.html").write_text("<title>its page</title>")
        (package / "public/bundle.js").write_text("")
        study = self.study(["sh", "-c", f"until [ -e {self.dir}/go ]; do sleep 0.05; done; echo loss=1"],
                           search_space=SPACE, trials=1, metric={"name": "loss", "from_output": "loss=(.*)"})
        env = {"PYTHONPATH": str(package.parent)}
        run = self.start("run", study, "--dir", self.dir / "run", "--slots", 1, "--dashboard", env=env)
        found = wait_for(lambda: re.search(r"dashboard (http://\S+)/dashboard", self.output(run)), "the dashboard's address")
        with urllib.request.urlopen(f"{found[1]}/dashboard", timeout=PATIENCE_S) as page:
            self.assertIn("its page", page.read().decode())
        with urllib.request.urlopen(f"{found[1]}/api/studies", timeout=PATIENCE_S) as studies:
            self.assertEqual([each["study_name"] for each in json.load(studies)["study_summaries"]], ["e2e"])
        (self.dir / "go").touch()
        self.assertEqual(run.wait(PATIENCE_S), 0)
        with self.assertRaises(urllib.error.URLError):
            urllib.request.urlopen(f"{found[1]}/dashboard", timeout=PATIENCE_S)
        (package / "public/bundle.js").unlink()
        (package / "index.html").unlink()
        package.rename(package.parent / "another")
        said = self.run_tuner("run", study, "--dir", self.dir / "run", "--dashboard", code=2, env=env).stderr
        self.assertEqual(said, "tuner run: --dashboard: optuna-dashboard is not installed for the python3 of PATH; install it by: "
                               "python3 -m pip install optuna-dashboard\n")

    def test_no_value_is_a_failure_that_shows_what_was_printed(self):
        study = self.study(["echo", "loss: {x}", "{{x}}", '{"a": {"b": 1}}'], search_space=SPACE, trials=1,
                           metric={"name": "loss", "from_output": "loss=(.*)"})
        record = self.run_study(study, code=1)
        x = int(json.loads(record["trials"][0]["parameters"][0]["json"]))
        printed = 'loss: %d {x} {"a": {"b": 1}}' % x
        self.assertEqual(record["trials"][0]["reason"],
                         'it ended, and nothing that it printed has a value by "from_output": "loss=(.*)"; '
                         f'the nearest lines: "{printed}"')
        self.assertEqual(self.run_tuner("logs", "e2e", 0, "--dir", self.dir / "run").stdout, printed + "\n")

    def test_what_is_wrong_is_refused_when_it_is_submitted(self):
        self.serve(self.dir / "espalier.db")
        for keys, told in (({"command": ["echo", "{xx}"]}, '"command": "{xx}": there is no parameter "xx", did you mean {x}?'),
                           ({"metric": {"from_output": "loss=([0-9"}}, '"metric.from_output": needs a pattern (RE2): missing ]')):
            study = self.study(**{"command": ["true"], "search_space": SPACE, **keys})
            for verb in (("run", study, "--dir", self.dir / "run"), ("submit", study, "--service", self.grpc)):
                with self.subTest(verb[0], told=told):
                    self.assertIn(f"{study}: {told}", self.run_tuner(*verb, code=2).stderr)

    def test_a_trial_that_is_started_again_counts_anew(self):
        script = self.write("again.sh", f"""#!/bin/sh
echo loss=1; echo loss=2
until [ -e {self.dir}/go ]; do sleep 0.05; done
echo loss=3
""", 0o755)
        self.serve(self.dir / "espalier.db")
        self.agent(1)
        study = self.study([script], search_space=SPACE, trials=1, metric={"name": "loss", "from_output": "loss=(.*)"})
        self.run_tuner("submit", study, "--service", self.grpc)

        def values():
            trials = self.export("--service", self.grpc)["trials"]
            return [(int(v["step"]), v["value"]) for v in trials[0]["values"]] if trials else []

        wait_for(lambda: len(values()) == 2, "two values")
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: not self.export("--service", self.grpc)["trials"][0]["slots"], "the slot to be given back")
        (self.dir / "go").touch()
        self.run_tuner("resume", "e2e", "--service", self.grpc)
        wait_for(lambda: self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE", "the study to end")
        self.assertEqual(values(), [(1, 1), (2, 2), (3, 3)])


if __name__ == "__main__":
    unittest.main()
