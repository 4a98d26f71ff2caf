"""When Optuna's Terminator ends a study by BestValueStagnationEvaluator: what ours is held to.

A line of values is a study whose trials end one after another; a line below it has max_stagnation_trials, min_n_trials, and
after how many trials it ended ("-": it did not).

usage: PYTHON_WITH_OPTUNA optuna_stagnation.py > optuna_stagnation.txt
"""
import random
import warnings

import optuna
from optuna.terminator import BestValueStagnationEvaluator, Terminator
from optuna.trial import TrialState

STUDIES, TRIALS = 12, 60


def values_of(seed, direction):
    """Values that come closer to 0 by and by; a tenth of the trials fail."""
    draw = random.Random(seed)
    sign = 1 if direction == "minimize" else -1
    return [None if draw.random() < 0.1 else sign * round(abs(draw.gauss(0, 1)) * 0.9 ** (n / 4), 2) for n in range(TRIALS)]


def ends_after(values, direction, most, least):
    terminator = Terminator(BestValueStagnationEvaluator(most), min_n_trials=least)
    study = optuna.create_study(direction=direction)
    for n, value in enumerate(values):
        trial = study.ask()
        study.tell(trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)
        if terminator.should_terminate(study):
            return n + 1
    return "-"


def main():
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"# optuna {optuna.__version__}")
    for seed in range(STUDIES):
        direction = ("minimize", "maximize")[seed % 2]
        values = values_of(seed, direction)
        print("values", direction, *("fail" if value is None else f"{value:g}" for value in values))
        for most, least in ((30, 20), (5, 20), (8, 1), (0, 3)):
            print("ends", most, least, ends_after(values, direction, most, least))


main()
