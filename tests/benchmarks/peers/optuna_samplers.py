"""Runs Optuna's samplers on the functions of bench_sampler_trials, which evaluates them.

    optuna_samplers.py quality PROGRAM OUT.json TRIALS SEEDS [SAMPLER...]
    optuna_samplers.py speed SAMPLER DIMENSIONS TRIALS SUGGESTIONS

`quality` writes each study's regret: the value at the parameters that were told to be the best, less the function's
least. What OUT has is not run again, and OUT is written after each study, so that it goes on after any end, and several
may run at once. `speed` prints the processor time of each suggestion to a study that has so many trials; rustuna's
samplers are those whose names begin with rustuna_."""
import contextlib
import fcntl
import importlib.metadata
import json
import math
import os
import random
import subprocess
import sys
import time
import warnings

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
warnings.filterwarnings("ignore")
import optuna  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

SAMPLERS = ("random", "grid", "brute_force", "qmc", "tpe", "tpe_univariate", "tpe_group", "cmaes", "nsga2", "nsga3",
            "gp")
PACKAGES = ("optuna", "cmaes", "scipy", "numpy", "torch")
# Grids that so many trials complete: how many points on each parameter. Others are a matter of their order alone.
GRIDS = {"branin": 10}
FINITE = ("augmentation",)


def make_sampler(name, seed, noisy=False, space=None, points=None):
    s = optuna.samplers
    if name == "grid":
        return s.GridSampler(grid_of(space, points), seed=seed)
    if name == "gp":
        import torch
        torch.set_num_threads(1)
        return s.GPSampler(seed=seed, deterministic_objective=not noisy)
    made = {"random": lambda: s.RandomSampler(seed=seed), "brute_force": lambda: s.BruteForceSampler(seed=seed),
            "qmc": lambda: s.QMCSampler(seed=seed, scramble=True), "tpe": lambda: s.TPESampler(seed=seed),
            "tpe_univariate": lambda: s.TPESampler(seed=seed, multivariate=False),
            "tpe_group": lambda: s.TPESampler(seed=seed, multivariate=True, group=True),
            "cmaes": lambda: s.CmaEsSampler(seed=seed), "nsga2": lambda: s.NSGAIISampler(seed=seed),
            "nsga3": lambda: s.NSGAIIISampler(seed=seed)}
    return made[name]()


def grid_of(space, points):
    """The middles of so many equal parts of each interval."""
    return {name: [low + (i + 0.5) / points * (high - low) for i in range(points)]
            for name, (low, high) in ((name, spec["_value"]) for name, spec in space.items())}


def suggest(trial, space, prefix=""):
    """The trial's parameters by flat names, in a space of NNI's format."""
    parameters = {}
    for key, spec in space.items():
        name, values = prefix + key, spec["_value"]
        if spec["_type"] == "choice" and isinstance(values[0], dict):
            chosen = parameters[name] = trial.suggest_categorical(name, [option["_name"] for option in values])
            option = next(option for option in values if option["_name"] == chosen)
            inner = {k: v for k, v in option.items() if k != "_name"}
            parameters |= suggest(trial, inner, f"{name}/{chosen}/")
        elif spec["_type"] == "choice":
            parameters[name] = trial.suggest_categorical(name, values)
        elif spec["_type"] == "randint":
            parameters[name] = trial.suggest_int(name, values[0], values[1] - 1)
        elif spec["_type"] == "qloguniform" and values[2] == 1:
            parameters[name] = float(trial.suggest_int(name, values[0], values[1], log=True))
        elif spec["_type"] == "quniform":
            parameters[name] = trial.suggest_float(name, values[0], values[1], step=values[2])
        else:
            assert spec["_type"] in ("uniform", "loguniform"), spec
            parameters[name] = trial.suggest_float(name, values[0], values[1], log=spec["_type"] == "loguniform")
    return parameters


class Evaluator:
    """What evaluates one function."""

    def __init__(self, program, function):
        self.process = subprocess.Popen([program, "evaluate", function], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __call__(self, seed, number, parameters):
        """The value that a trial is told, and the function's."""
        self.process.stdin.write(f"{seed} {number} {json.dumps(parameters)}\n")
        self.process.stdin.flush()
        return tuple(map(float, self.process.stdout.readline().split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def regret(evaluate, function, sampler, trials, seed):
    best = (math.inf, math.inf)

    def objective(trial):
        nonlocal best
        told = evaluate(seed, trial.number, suggest(trial, function["space"]))
        best = min(best, told, key=lambda pair: pair[0])
        return told[0]

    study = optuna.create_study(sampler=make_sampler(sampler, seed, function["noise"] > 0, function["space"],
                                                     GRIDS.get(function["name"])))
    study.optimize(objective, n_trials=trials)
    return best[1] - function["optimum"]


@contextlib.contextmanager
def locked(folder):
    """By all that write there, one after the other."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Record:
    """The results of all that run: {"regret": {SAMPLER: {FUNCTION: [by seed, null where none is known]}}}, and of
    what."""

    def __init__(self, path, trials):
        self.path, self.trials = path, trials

    def read(self):
        try:
            with open(self.path) as file:
                record = json.load(file)
        except FileNotFoundError:
            record = {"trials": self.trials, "versions": {}, "regret": {}}
        assert record["trials"] == self.trials, f"{self.path} is of {record['trials']} trials"
        return record

    def has(self, sampler, function, seed):
        known = self.read()["regret"].get(sampler, {}).get(function, [])
        return seed < len(known) and known[seed] is not None

    def add(self, sampler, function, seed, value):
        with locked(os.path.dirname(os.path.abspath(self.path))):
            record = self.read()
            record["versions"] |= {name: importlib.metadata.version(name) for name in PACKAGES}
            values = record["regret"].setdefault(sampler, {}).setdefault(function, [])
            values.extend([None] * (seed + 1 - len(values)))
            values[seed] = float(f"{value:.9g}")
            with open(self.path + ".new", "w") as file:
                file.write(text_of(record))
            os.replace(self.path + ".new", self.path)


def text_of(record):
    """JSON with a line for each sampler's values of a function."""
    samplers = []
    for sampler, functions in record["regret"].items():
        lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(values)}" for name, values in functions.items())
        samplers.append(f"  {json.dumps(sampler)}: {{\n{lines}}}")
    head = "".join(f"{json.dumps(key)}: {json.dumps(record[key])},\n" for key in ("trials", "versions"))
    return "{" + head + '"regret": {\n' + ",\n".join(samplers) + "}}\n"


def suits(sampler, function):
    if sampler == "grid":
        return function["name"] in GRIDS
    return sampler != "brute_force" or function["name"] in FINITE


def quality(program, out, trials, seeds, samplers):
    functions = [json.loads(line) for line in subprocess.run([program, "functions"], check=True, capture_output=True,
                                                             text=True).stdout.splitlines()]
    record = Record(out, trials)
    for seed in range(seeds):
        for sampler in samplers:
            for function in functions:
                if not suits(sampler, function) or record.has(sampler, function["name"], seed):
                    continue
                evaluate = Evaluator(program, function["name"])
                begun = time.process_time()
                value = regret(evaluate, function, sampler, trials, seed)
                evaluate.close()
                record.add(sampler, function["name"], seed, value)
                took = time.process_time() - begun
                print(f"{sampler} {function['name']} seed {seed}: {value:.4g}, {took:.1f} s", flush=True)


def objective_of(values):
    return sum((value - 0.3) ** 2 for value in values)


def speed(name, dimensions, trials, suggestions):
    """Milliseconds of processor time of each suggestion, each of which is told before the next."""
    if name.startswith("rustuna_"):
        import rustuna
        sampler = {"rustuna_tpe": rustuna.samplers.TPESampler, "rustuna_cmaes": rustuna.samplers.CmaEsSampler,
                   "rustuna_nsga2": rustuna.samplers.NSGAIISampler}[name](seed=1)
        library, create_trial = rustuna, rustuna.create_trial
    else:
        sampler, library, create_trial = make_sampler(name, 1), optuna, optuna.trial.create_trial
    study = library.create_study(sampler=sampler)
    names = [f"x{i}" for i in range(dimensions)]
    draws = random.Random(1)
    distributions = {n: library.distributions.FloatDistribution(0, 1) for n in names}
    for _ in range(trials):
        values = [draws.random() for _ in names]
        study.add_trial(create_trial(params=dict(zip(names, values)), distributions=distributions,
                                     value=objective_of(values)))
    taken = []
    for _ in range(suggestions):
        begun = time.process_time()
        trial = study.ask()
        values = [trial.suggest_float(n, 0, 1) for n in names]
        taken.append(1e3 * (time.process_time() - begun))
        study.tell(trial.number, objective_of(values))
    print(json.dumps(taken))


def main():
    kind, *rest = sys.argv[1:]
    if kind == "quality":
        program, out, trials, seeds, *samplers = rest
        quality(program, out, int(trials), int(seeds), samplers or SAMPLERS)
    else:
        name, *numbers = rest
        speed(name, *map(int, numbers))


if __name__ == "__main__":
    main()
