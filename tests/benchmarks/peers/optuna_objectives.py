"""Runs Optuna's samplers on studies of several objectives, of bench_objective_trials, on virtual time and without pruning:

    optuna_objectives.py PROGRAM FOLDER OUT.json SLOTS SEEDS PROBLEM:TRIALS...

So many slots run one trial each, and a trial is asked for when a slot is free. By sampler, problem and seed OUT has the
slot-seconds of all trials and the hypervolume of those that had ended after each tenth of them. What OUT has is not run
again."""
import heapq
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
import optuna  # noqa: E402
from optuna_samplers import suggest  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

TENTHS = 10
SAMPLERS = {"nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed),
            "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed)}


class Evaluator:
    """What knows one problem."""

    def __init__(self, program, folder, problem):
        self.process = subprocess.Popen([program, folder, "evaluate", problem], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.process.stdout.readline().split()]

    def trial(self, parameters):
        seconds, *values = self.ask("trial " + json.dumps(parameters))
        return seconds, values

    def ended(self, number):
        return self.ask(f"ended {number}")[0]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run(evaluator, problem, sampler, trials, slots, seed):
    """Slot-seconds of all, and the hypervolume after each tenth of them."""
    study = optuna.create_study(directions=["minimize"] * problem["objectives"], sampler=sampler(seed))
    ends, running, asked, held = [], [], 0, []
    now = 0.0
    while asked < trials or running:
        while asked < trials and len(running) < slots:
            trial = study.ask()
            seconds, values = evaluator.trial(suggest(trial, problem["space"]))
            heapq.heappush(running, (now + seconds, trial.number, trial, values))
            held.append((now, now + seconds))
            asked += 1
        now, number, trial, values = heapq.heappop(running)
        study.tell(trial, values)
        ends.append((now, evaluator.ended(number)))
    volumes_at = [(sum(min(end, at) - begin for begin, end in held if begin < at), volume) for at, volume in ends]
    whole = sum(end - begin for begin, end in held)
    tenths = [max([volume for at, volume in volumes_at if at <= whole * i / TENTHS * (1 + 1e-9)], default=0)
              for i in range(1, TENTHS + 1)]
    return [float(f"{value:.9g}") for value in (whole, *tenths)]


def main():
    program, folder, out, slots, seeds, *chosen = sys.argv[1:]
    lines = subprocess.run([program, folder, "problems"], check=True, capture_output=True, text=True).stdout
    known = {problem["name"]: problem for problem in map(json.loads, lines.splitlines())}
    path = pathlib.Path(out)
    record = json.loads(path.read_text()) if path.exists() else {"trials": {}, "slots": int(slots), "volumes": {}}
    assert record["slots"] == int(slots), f"{path} is of {record['slots']} slots"
    record["versions"] = {name: importlib.metadata.version(name) for name in ("optuna", "numpy", "scipy")}
    for name_and_trials in chosen:
        name, trials = name_and_trials.split(":")
        problem = known[name]
        assert record["trials"].setdefault(name, int(trials)) == int(trials), f"{path} is of other trials of {name}"
        evaluated = {name: record["volumes"].setdefault(name, {}).setdefault(problem["name"], []) for name in SAMPLERS}
        for name, sampler in SAMPLERS.items():
            for seed in range(len(evaluated[name]), int(seeds)):
                evaluator = Evaluator(program, folder, problem["name"])
                evaluated[name].append(run(evaluator, problem, sampler, int(trials), int(slots), seed))
                evaluator.close()
                write(path, record)
        print(problem["name"], flush=True)


def write(path, record):
    """JSON with a line a seed."""
    head = ",\n".join(f"{json.dumps(key)}: {json.dumps(record[key])}" for key in ("trials", "slots", "versions"))
    samplers = []
    for name, problems in record["volumes"].items():
        rows = [f'  {json.dumps(problem)}: [\n' + ",\n".join(f"    {json.dumps(row)}" for row in seeds) + "]"
                for problem, seeds in problems.items()]
        samplers.append(f" {json.dumps(name)}: {{\n" + ",\n".join(rows) + "}")
    path.write_text("{" + head + ',\n"volumes": {\n' + ",\n".join(samplers) + "}}\n")


if __name__ == "__main__":
    main()
