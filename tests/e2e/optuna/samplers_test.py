"""Optuna's samplers for studies of the service, in processes of their own."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import environment
from harness import ROOT, TunerTest, processes, wait_for

TORCH = ROOT / ".deps/venv"
SPACE = {"x": {"_type": "uniform", "_value": [-5, 5]},
         "rate": {"_type": "loguniform", "_value": [1e-5, 1]},
         "layers": {"_type": "randint", "_value": [1, 9]},
         "share": {"_type": "quniform", "_value": [0, 1, 0.1]},
         "noise": {"_type": "normal", "_value": [2, 0.5]},
         "net": {"_type": "choice", "_value": [{"_name": "deep", "depth": {"_type": "randint", "_value": [2, 5]}},
                                               {"_name": "wide"}]}}
NUMBERS = {key: SPACE[key] for key in ("x", "rate", "layers")}
LINE = {"x": SPACE["x"]}

# Samplers of a hub, by the folder of their package.
HEAD = """
import os, signal, socket, time
import optuna

class Own(optuna.samplers.BaseSampler):
    def __init__(self, share=0.5):
        self.share = share
    def infer_relative_search_space(self, study, trial):
        return {}
    def sample_relative(self, study, trial, search_space):
        return {}
    def sample_independent(self, study, trial, name, distribution):
"""
HUB = {
    "samplers/share": "return distribution.low + self.share * 10 + trial.number / 100",
    "samplers/raises": "raise RuntimeError('has no more to say')",
    "samplers/sleeps": "time.sleep(3600)",
    "samplers/spins": "\n        while True: pass",
    "samplers/dies": "os.kill(os.getpid(), signal.SIGKILL)",
    "samplers/grows": "return len(bytearray(2 << 30))",
    "samplers/probes": """
        def probe(what, do):
            try:
                return f'{what}: {do()!r}'
            except OSError:
                return None
        found = [probe('network', lambda: socket.socket()), probe('database', lambda: open(DATABASE, 'rb').read(4)),
                 probe('others', lambda: open(f'/proc/{os.getppid()}/environ').read()),
                 probe('home', lambda: os.listdir(HOME)), probe('file', lambda: open(OWN + '.new', 'w')),
                 probe('signal', lambda: os.kill(os.getppid(), 0)),
                 probe('descriptors', lambda: [os.dup(2) for _ in range(300)])]
        raise RuntimeError(f"found {[one for one in found if one]}, variables {' '.join(sorted(os.environ))}")
""",
}


class OptunaSamplers(TunerTest):
    def setUp(self):
        super().setUp()
        self.hub = self.dir / "hub" / "package"
        for package, body in HUB.items():
            folder = self.hub / package
            folder.mkdir(parents=True)
            names = {"DATABASE": str(self.dir / "studies.db"), "HOME": str(pathlib.Path.home()), "OWN": str(folder)}
            text = "".join(f"{name} = {value!r}\n" for name, value in names.items())
            (folder / "__init__.py").write_text("from .own import Own\n")
            (folder / "own.py").write_text(HEAD + "        " + body + "\n" + text)

    def with_optuna(self, *options, python=None):
        words = ["--optuna-python", python or environment.python(), "--optuna-hub", self.dir / "hub", *options]
        before = getattr(self, "grpc", None), getattr(self, "http", None)
        self.service = self.serve(self.dir / "studies.db", *before, options=words)

    def call(self, path, method="POST", code=None, **body):
        connection = http.client.HTTPConnection(self.http, timeout=120)
        try:
            connection.request(method, "/api/" + path, json.dumps(body) if method == "POST" else None)
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        self.assertTrue(reply.status < 300 if code is None else reply.status == code, f"{reply.status} {text}")
        return json.loads(text)

    def create(self, name, sampler, space=SPACE, **more):
        if not isinstance(sampler, dict):
            sampler = {"name": "optuna", **({"sampler": sampler} if sampler else {})}
        self.call("studies", name=name, ask_and_tell=True, search_space=space, seed=7, sampler=sampler, **more)

    def work(self, name, trials):
        """Trials one after another, of which some fail; their parameters."""
        done = []
        for _ in range(trials):
            trial = self.call(f"studies/{name}/ask")
            parameters = trial["parameters"]
            done.append(parameters)
            if trial["number"] % 7 == 5:
                self.call(f"trials/{trial['trial_id']}/tell", state="fail")
            else:
                value = (parameters["x"] - 1) ** 2 + parameters.get("layers", 0)
                self.call(f"trials/{trial['trial_id']}/tell", state="complete", value=value)
        return done

    def restart(self, *options, **keys):
        self.service.kill()
        self.service.wait()
        self.with_optuna(*options, **keys)

    def children(self):
        return [pid for pid, parent, _ in processes() if parent == self.service.pid]

    def refusal(self, sampler, space=LINE):
        """Why a study stops at its first trial: what its client is told, and what the study says of itself."""
        name = f"s{time.monotonic_ns()}"
        self.create(name, sampler, space)
        told = self.call(f"studies/{name}/ask", code=409)["error"]
        study = self.call(f"studies/{name}", "GET")["study"]
        self.assertEqual(study["state"], "STUDY_STOPPED")
        self.assertIn(study["reason"], told)
        self.assertIn(study["reason"][:100], self.run_tuner("show", name, "--service", self.grpc).stdout)
        return study["reason"]

    def refused(self, sampler, space=LINE, **more):
        """Why there is no such study."""
        name = f"s{time.monotonic_ns()}"
        if not isinstance(sampler, dict):
            sampler = {"name": "optuna", "sampler": sampler}
        told = self.call("studies", code=400, name=name, ask_and_tell=True, search_space=space, sampler=sampler,
                         **more)["error"]
        self.call(f"studies/{name}", "GET", code=404)
        return told

    def compare_with_a_restart(self, sampler, trials, space=SPACE, **keys):
        """A study whose sampler's process and whose service are killed has the trials of one that runs on."""
        self.create("whole", sampler, space)
        self.create("cut", sampler, space)
        whole = self.work("whole", trials)
        cut = self.work("cut", trials // 3)
        for pid in self.children():
            os.kill(pid, signal.SIGKILL)
        cut += self.work("cut", trials // 3)
        self.restart(**keys)
        cut += self.work("cut", trials - len(cut))
        self.assertEqual(whole, cut)
        self.assertGreater(len({json.dumps(parameters) for parameters in whole}), trials / 2)
        return whole

    def test_tpe_is_the_default_and_goes_on_after_a_crash(self):
        self.with_optuna()
        whole = self.compare_with_a_restart(None, 24)
        self.assertLess(min(abs(parameters["x"] - 1) for parameters in whole), 1)
        self.assertTrue(all(("net" in parameters) for parameters in whole))

    def test_nsga2_keeps_its_generations(self):
        self.with_optuna()
        options = {"population_size": 4, "crossover": {"crossover": "BLXAlphaCrossover"}}
        self.compare_with_a_restart({"name": "optuna", "sampler": "NSGAIISampler", "options": options}, 24)

    def test_nsga3_draws_the_same(self):
        self.with_optuna()
        options = {"population_size": 4}
        self.compare_with_a_restart({"name": "optuna", "sampler": "NSGAIIISampler", "options": options}, 24)

    def test_cmaes_keeps_its_distribution(self):
        self.with_optuna()
        self.compare_with_a_restart("CmaEsSampler", 24, NUMBERS)

    def test_gp(self):
        if not TORCH.exists():
            self.skipTest(f"there is no {TORCH}; see scripts/setup.sh")
        venv = self.dir / "venv"
        subprocess.run([environment.python(), "-m", "venv", "--without-pip", venv], check=True)
        packages = next(venv.glob("lib/python3*/site-packages"))
        for i, other in enumerate((environment.folder() / "venv", TORCH)):
            (packages / f"{i}.pth").write_text(f"{next(other.glob('lib/python3*/site-packages')).resolve()}\n")
        python = str(venv / "bin" / "python")
        self.with_optuna(python=python)
        self.compare_with_a_restart({"name": "optuna", "sampler": "GPSampler", "options": {"n_startup_trials": 5}}, 12,
                                    NUMBERS, python=python)

    def test_qmc_has_optunas_points(self):
        self.with_optuna()
        whole = self.compare_with_a_restart("QMCSampler", 9, NUMBERS)
        own = subprocess.run([environment.python(), "-W", "ignore", "-c", """
import json, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(sampler=optuna.samplers.QMCSampler())
trials = []
for i in range(9):
    trial = study.ask()
    trials.append({"x": trial.suggest_float("x", -5, 5), "rate": trial.suggest_float("rate", 1e-5, 1, log=True),
                   "layers": trial.suggest_int("layers", 1, 8)})
    study.tell(trial, 1.0)
print(json.dumps(trials))
"""], check=True, stdout=subprocess.PIPE, text=True).stdout
        for ours, optunas in list(zip(whole, json.loads(own)))[1:]:  # the first one is random
            for name, value in optunas.items():
                self.assertAlmostEqual(ours[name], value, delta=1e-9 * abs(value))

    def test_several_objectives_and_constraints(self):
        self.with_optuna()
        self.create("two", {"name": "optuna", "sampler": "TPESampler", "options": {"n_startup_trials": 8}}, NUMBERS,
                    directions=["minimize", "maximize"])
        asked = []
        for _ in range(30):
            trial = self.call("studies/two/ask")
            asked.append(trial["parameters"]["x"])
            self.call(f"trials/{trial['trial_id']}/attributes", system={"constraints:x": -asked[-1]})
            self.call(f"trials/{trial['trial_id']}/tell", state="complete",
                      values=[asked[-1] ** 2, trial["parameters"]["layers"]])
        broken = [sum(x < 0 for x in part) for part in (asked[:8], asked[22:])]
        self.assertLess(broken[1], 4, asked)
        # Asked for together they see each other.
        together = [self.call("studies/two/ask")["parameters"] for _ in range(4)]
        self.assertEqual(len({json.dumps(parameters) for parameters in together}), 4)

    def test_a_hubs_sampler(self):
        self.with_optuna()
        sampler = {"name": "optuna", "package": "samplers/share", "options": {"share": 0.25}}
        self.create("hub", sampler, LINE)
        self.assertEqual([parameters["x"] for parameters in self.work("hub", 3)], [-2.5, -2.49, -2.48])
        self.assertIn("known are Own", self.refused({**sampler, "sampler": "Other"}))
        self.assertIn('"samplers/none" is in none of the hubs', self.refused({**sampler, "package": "samplers/none"}))
        self.assertIn("is no folder of a hub", self.refused({**sampler, "package": "../samplers/share"}))

    def test_what_optuna_refuses_is_said_where_the_study_is_submitted(self):
        self.with_optuna()
        known = "known are BruteForceSampler, CmaEsSampler"
        self.assertIn(f'"sampler": "GPSamplr" is unknown; {known}', self.refused("GPSamplr"))
        wrong = {"name": "optuna", "sampler": "TPESampler"}
        reason = self.refused({**wrong, "options": {"startup": 3}})
        self.assertIn("argument 'startup'; it takes consider_prior, prior_weight", reason)
        self.assertIn("n_startup_trials", reason)
        self.assertIn("option \"seed\" is the service's", self.refused({**wrong, "options": {"seed": 3}}))
        self.assertIn("BruteForceSampler: ValueError", self.refused("BruteForceSampler"))
        self.assertIn("CmaEsSampler: ValueError", self.refused("CmaEsSampler", directions=["minimize", "maximize"]))
        bounded = {"name": "bounded", "command": ["true", "{x}"], "trials": 2, "directory": str(self.dir),
                   "search_space": LINE, "metric": "loss", "constraints": ["latency <= 20"]}
        told = self.call("studies", code=400, sampler={"name": "optuna", "sampler": "RandomSampler"}, **bounded)["error"]
        self.assertIn("RandomSampler does not heed constraints: give GPSampler, NSGAIIISampler, NSGAIISampler", told)
        self.call("studies", sampler={"name": "optuna", "sampler": "TPESampler"}, **bounded)
        # This Python has no PyTorch, which would be missed after the first ten trials.
        self.assertIn(f"GPSampler needs torch, which {environment.python()} has not", self.refused("GPSampler"))
        bad = self.call("studies", code=400, name="bad", ask_and_tell=True, search_space=LINE,
                        sampler={"name": "optuna", "options": 3})["error"]
        self.assertIn('option "options" needs an object, got 3', bad)

    def test_one_that_raises_or_dies_or_hangs_stops_its_study_alone(self):
        self.with_optuna("--optuna-seconds", 1, "--optuna-memory", 1)
        self.create("beside", "RandomSampler", LINE)
        sleeping = {"name": "optuna", "package": "samplers/sleeps"}
        self.create("sleeping", sleeping, LINE)
        asking = subprocess.Popen(["curl", "-s", "-X", "POST", f"http://{self.http}/api/studies/sleeping/ask"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(asking.kill)
        reason = {name: self.refusal({"name": "optuna", "package": f"samplers/{name}"})
                  for name in ("raises", "dies", "spins", "grows")}
        self.work("beside", 3)
        self.assertIn("optuna: samplers/raises: RuntimeError: has no more to say (own.py:", reason["raises"])
        self.assertIn("optuna: samplers/dies was tried 3 times: it was ended by signal 9 (Killed)", reason["dies"])
        self.assertIn("optuna: samplers/spins: it needed more processor time than it may have", reason["spins"])
        self.assertIn("optuna: samplers/grows: MemoryError", reason["grows"])
        self.assertIn("samplers/sleeps: it has not answered within 14 s", json.loads(asking.communicate()[0])["error"])
        wait_for(lambda: len(self.children()) == 1, "the processes to end but for that of the study that runs")
        # Where the reason is gone it goes on.
        (self.hub / "samplers/raises/own.py").write_text(HEAD + "        return 1.0\n")
        stopped = next(study["name"] for study in self.call("studies", "GET")["studies"]
                       if "no more to say" in study.get("reason", ""))
        self.run_tuner("resume", stopped, "--service", self.grpc)
        self.assertEqual(self.call(f"studies/{stopped}/ask")["parameters"], {"x": 1.0})

    def test_it_finds_no_network_no_credentials_and_no_database(self):
        os.environ["SECRET_OF_THE_SERVICE"] = "none of theirs"
        self.addCleanup(os.environ.pop, "SECRET_OF_THE_SERVICE")
        self.with_optuna()
        reason = self.refusal({"name": "optuna", "package": "samplers/probes"})
        self.assertIn("found [], variables CUDA_VISIBLE_DEVICES HOME LANG MKL_NUM_THREADS OMP_NUM_THREADS", reason)
        self.assertIn("OPENBLAS_NUM_THREADS PATH (own.py", reason)

    def test_trials_of_the_pool(self):
        self.with_optuna()
        self.agent(2)
        program = self.write("program.sh", "#!/bin/sh\necho \"step 1 loss=$1\"\n", 0o755)
        study = {"command": [program, "{x}"], "trials": 6, "directory": str(self.dir), "search_space": LINE,
                 "metric": {"name": "loss", "direction": "minimize", "from_output": "step (?P<step>[0-9]+) loss=(.*)"}}
        self.call("studies", name="pool", sampler={"name": "optuna", "sampler": "RandomSampler"}, **study)
        wait_for(lambda: self.call("studies/pool", "GET")["study"]["state"] == "STUDY_COMPLETE", "the study to end")
        file = self.write("unwell.json", json.dumps({**study, "name": "unwell", "sampler": {
            "name": "optuna", "sampler": "Nothing"}}))
        told = self.run_tuner("submit", file, "--service", self.grpc, code=2).stderr
        self.assertIn('"sampler": "Nothing" is unknown; known are BruteForceSampler', told)

    def test_a_python_that_says_nothing_leaves_the_check_to_the_first_suggestion(self):
        self.with_optuna(python=str(self.write("python", "#!/bin/sh\nexec sleep 3600\n", 0o755)))
        began = time.monotonic()
        self.create("slow", "TPESampler", LINE)
        self.assertLess(time.monotonic() - began, 60)  # it waits for 5 s
        decisions = self.call("studies/slow", "GET")["decisions"]
        self.assertIn("its sampler was not checked, it has not answered within 5 s", decisions[0]["reason"])
        wait_for(lambda: not self.children(), "the process to end")

    def test_a_service_without_optuna_refuses_such_studies(self):
        self.serve(self.dir / "studies.db")
        error = self.call("studies", code=409, name="s", ask_and_tell=True, search_space=LINE,
                          sampler="optuna")["error"]
        self.assertIn("needs a Python with Optuna, which --optuna-python of `tuner serve`", error)
        python = ["--optuna-python", environment.python()]
        for words, option, why in (([], "--optuna-python", "is no program"), (python, "--optuna-hub", "is no folder")):
            told = self.run_tuner("serve", "--db", self.dir / "other.db", *words, option, self.dir / "none", code=2)
            self.assertIn(f'{option} "{self.dir}/none": {why}', told.stderr)


if __name__ == "__main__":
    unittest.main()
