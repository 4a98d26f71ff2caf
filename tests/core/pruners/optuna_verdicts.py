"""What Optuna's pruners say of curves: the recorded verdicts that ours are held to.

Each study is a set of curves; under each pruner its trials report until the pruner ends them. Verdicts are then the step at
which each trial was ended, "-" for one that was not: at all steps before it Optuna said "go on".

usage: PYTHON_WITH_OPTUNA optuna_verdicts.py > optuna_verdicts.txt
"""
import math
import random
import warnings

import numpy
import optuna
import scipy
from optuna.pruners import (MedianPruner, PatientPruner, PercentilePruner, SuccessiveHalvingPruner, ThresholdPruner,
                            WilcoxonPruner)
from optuna.trial import TrialState

NAN = float("nan")
PLAIN = ("smooth", "noisy", "crossing", "coarse")
ALL = PLAIN + ("nan", "lost")


def curve(draw, kind, steps, falling):
    """Points of one trial; values with three digits, so that some are equal."""
    start, end = draw.uniform(0.7, 1.3), draw.uniform(0.05, 0.6)
    rate, noise = draw.uniform(0.1, 0.8), {"noisy": 0.12, "smooth": 0.0}.get(kind, 0.03)
    points = []
    for n, step in enumerate(steps):
        value = end + (start - end) * math.exp(-rate * n) + draw.gauss(0, noise)
        if kind == "crossing" and n > len(steps) // 2:
            value += 0.05 * (n - len(steps) // 2)
        if kind == "coarse":
            value = round(value, 1)
        if (kind == "nan" and draw.random() < 0.3) or (kind == "lost" and n < 4) or kind == "nothing":
            value = NAN
        points.append((step, round(value if falling else 1 - value, 3)))
    return points


def study(seed, falling, trials, steps, gaps, kinds=ALL):
    """Curves of a study, one list of points for each trial."""
    draw = random.Random(seed)
    curves = []
    for n in range(trials):
        mine = [step for step in steps if not gaps or draw.random() < 0.6] or steps[:1]
        kind = "nothing" if n == 9 and kinds is ALL else kinds[n % len(kinds)]
        curves.append(curve(draw, kind, mine, falling))
    return curves


def instances(seed, falling, trials, count, digits):
    """Trials that are tried on instances in an order of their own; the final value is the mean."""
    draw = random.Random(seed)
    hardness = [draw.uniform(0, 1) for _ in range(count)]
    curves = []
    for n in range(trials):
        skill = draw.uniform(-0.2, 0.2)
        order = list(range(count))
        draw.shuffle(order)
        points = [(i, round(hardness[i] + (skill if falling else -skill) + draw.gauss(0, 0.15), digits)) for i in order]
        if n == 5:
            points[3] = (points[3][0], NAN)
        curves.append(points)
    return curves


def verdicts(pruner, curves, direction, together):
    """At which step each trial was ended. One trial after another, or all at once, each a report in turn."""
    recorded = optuna.create_study(direction=direction, pruner=pruner)
    ended_at = [None] * len(curves)

    def end(trial, points):
        value = numpy.mean([value for _, value in points]) if together == "mean" else points[-1][1]
        value = float(value)
        recorded.tell(trial, None if math.isnan(value) else value,
                      state=TrialState.FAIL if math.isnan(value) else TrialState.COMPLETE)

    def report(n, trial, place):
        step, value = curves[n][place]
        trial.report(value, step)
        if trial.should_prune():
            ended_at[n] = step
            recorded.tell(trial, state=TrialState.PRUNED)
        elif place + 1 == len(curves[n]):
            end(trial, curves[n])
        else:
            return True
        return False

    if together != "yes":
        for n, points in enumerate(curves):
            trial = recorded.ask()
            place = 0
            while report(n, trial, place):
                place += 1
        return ended_at
    running = [(n, recorded.ask(), 0) for n in range(len(curves))]
    while running:
        running = [(n, trial, place + 1) for n, trial, place in running if report(n, trial, place)]
    return ended_at


def pruners():
    """Each with the name and options of ours that mean the same."""
    for percent, startup, warmup, interval, least in ((25, 5, 0, 1, 1), (10, 3, 2, 3, 1), (75, 1, 0, 1, 6), (0, 2, 1, 1, 1)):
        yield (f"percentile percentile={percent} startup_trials={startup} warmup_steps={warmup} interval={interval} "
               f"min_trials={least}", lambda p=percent, s=startup, w=warmup, i=interval, m=least:
               PercentilePruner(p, s, w, i, n_min_trials=m))
    for startup, warmup, interval, least in ((5, 0, 1, 1), (1, 3, 1, 1), (2, 0, 4, 3), (0, 0, 1, 8)):
        yield (f"median startup_trials={startup} warmup_steps={warmup} interval={interval} min_trials={least}",
               lambda s=startup, w=warmup, i=interval, m=least: MedianPruner(s, w, i, n_min_trials=m))
    for lower, upper, warmup, interval in ((None, 0.9, 0, 1), (0.15, None, 2, 1), (0.2, 0.95, 1, 3)):
        bounds = "".join(f" {name}={value}" for name, value in (("lower", lower), ("upper", upper)) if value is not None)
        yield (f"threshold{bounds} warmup_steps={warmup} interval={interval}",
               lambda lo=lower, up=upper, w=warmup, i=interval: ThresholdPruner(lo, up, w, i))
    for patience, delta in ((0, 0.0), (1, 0.0), (2, 0.05), (4, 0.01)):
        yield (f"patient patience={patience} min_delta={delta}",
               lambda p=patience, d=delta: PatientPruner(None, p, d))
    yield ("patient patience=1 pruner=median pruner.startup_trials=2",
           lambda: PatientPruner(MedianPruner(2), 1))
    yield ("patient patience=2 min_delta=0.02 pruner=percentile pruner.percentile=40 pruner.startup_trials=3",
           lambda: PatientPruner(PercentilePruner(40, 3), 2, 0.02))
    yield ("patient patience=0 pruner=threshold pruner.upper=0.8", lambda: PatientPruner(ThresholdPruner(upper=0.8), 0))
    yield from halving()


def halving():
    for least, eta, rate, bootstrap in ((0, 4, 0, 0), (0, 2, 1, 0), (1, 3, 0, 0), (2, 2, 0, 0), (1, 4, 1, 0), (1, 2, 0, 3)):
        yield (f"successive_halving min_steps={least} eta={eta} min_early_stopping_rate={rate} bootstrap_count={bootstrap}",
               lambda m=least, e=eta, r=rate, b=bootstrap: SuccessiveHalvingPruner(m or "auto", e, r, b))


def wilcoxon():
    for threshold, startup in ((0.1, 2), (0.25, 0), (0.05, 6)):
        yield (f"wilcoxon p_threshold={threshold} startup_steps={startup}",
               lambda p=threshold, s=startup: WilcoxonPruner(p_threshold=p, n_startup_steps=s))


def word(value):
    return "nan" if math.isnan(value) else f"{value:g}"


def write(name, direction, together, curves, rows):
    print(f"study {name} {direction} {together}")
    for points in curves:
        print("curve", " ".join(f"{step}:{word(value)}" for step, value in points))
    for options, make in rows:
        ended = verdicts(make(), curves, direction, together)
        print("verdicts", options, "|", " ".join("-" if step is None else str(step) for step in ended))


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"# optuna {optuna.__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}")
    for seed, direction in enumerate(("minimize", "maximize")):
        falling = direction == "minimize"
        write("even", direction, "no", study(seed, falling, 30, list(range(1, 13)), False), pruners())
        write("plain", direction, "no", study(70 + seed, falling, 40, list(range(1, 18)), False, PLAIN), halving())
        write("gaps", direction, "no", study(10 + seed, falling, 30, list(range(0, 20)), True), pruners())
        write("together", direction, "yes", study(20 + seed, falling, 24, list(range(1, 11)), False), pruners())
        write("long", direction, "yes", study(30 + seed, falling, 20, list(range(40, 600, 40)), True), pruners())
        write("few", direction, "mean", instances(40 + seed, falling, 16, 12, 1), wilcoxon())
        write("folds", direction, "mean", instances(50 + seed, falling, 16, 25, 3), wilcoxon())
        write("many", direction, "mean", instances(60 + seed, falling, 12, 60, 2), wilcoxon())


main()
