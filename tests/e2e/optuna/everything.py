"""Studies with all that an Optuna storage can hold, made by whichever Optuna runs this.

usage: everything.py make|record SQLITE_FILE     prints what a storage shows, as one JSON object
"""
import datetime
import json
import math
import sys
import warnings

import optuna
from optuna.distributions import FloatDistribution, distribution_to_json
from optuna.trial import TrialState, create_trial

warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)

NAN, INF = float("nan"), float("inf")


def url(path):
    return f"sqlite:///{path}"


def several(trial):
    x = trial.suggest_float("x", 1e-3, 1, log=True)
    n = trial.suggest_int("n", 2, 10, step=2)
    choice = trial.suggest_categorical("ch€ice", [None, True, NAN, "ünï", 2, 0.5])
    if trial.number > 1:
        trial.suggest_float("sometimes", 0, 1, step=0.25)
    trial.set_user_attr("repr", repr(choice))
    trial.set_user_attr("nested", {"a": [1, NAN, -INF, None], "é": 12345678901234567890})
    if trial.number == 2:
        raise ValueError("fails")
    return x, (INF if trial.number == 0 else n), -INF


def pruned(trial):
    for step, value in enumerate([1.0, NAN, INF, -INF, 1e-300, -0.5]):
        trial.report(value, step * 10)
    if trial.number == 1:
        raise optuna.TrialPruned()
    return trial.suggest_float("y", -1e6, 1e6)


def make(path):
    # Ids that no study has any more.
    gone = optuna.create_study(storage=url(path), study_name="gone")
    gone.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    study = optuna.create_study(storage=url(path), study_name="séveral", directions=["minimize", "maximize", "minimize"])
    study.set_user_attr("note", ["ü", NAN, None])
    study.set_metric_names(["a", "b", "c"])
    study.enqueue_trial({"x": 0.5, "n": 4}, user_attrs={"why": "a guess"})
    study.optimize(several, n_trials=5, catch=(ValueError,))
    study.enqueue_trial({"x": 0.125})
    study.ask()  # takes it, and runs for ever
    study.enqueue_trial({"x": 0.25})
    # Between trials of this study there are some of another.
    other = optuna.create_study(storage=url(path), study_name="pruned", direction="maximize")
    other.optimize(pruned, n_trials=2)
    when = datetime.datetime(2024, 7, 1, 12, 30, 15, 123456)
    study.add_trial(create_trial(state=TrialState.COMPLETE, values=[1, 2, -3.5], params={"x": 0.75},
                                 distributions={"x": FloatDistribution(1e-3, 2, log=True)},
                                 intermediate_values={7: 1.5}, system_attrs={"s": "t"}))
    frozen = create_trial(state=TrialState.COMPLETE, values=[0, 0, 0])
    frozen.datetime_start, frozen.datetime_complete = when, when + datetime.timedelta(days=1, microseconds=1)
    study.add_trial(frozen)
    genetic = optuna.create_study(storage=url(path), study_name="genetic",
                                  sampler=optuna.samplers.NSGAIISampler(population_size=4, seed=1))
    genetic.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=14)
    optuna.create_study(storage=url(path), study_name="empty")
    optuna.delete_study(storage=url(path), study_name="gone")


def moment(time):
    return time and time.isoformat()


def trial_record(trial):
    return {"number": trial.number, "state": trial.state.name, "values": trial.values, "params": trial.params,
            "distributions": {k: distribution_to_json(d) for k, d in trial.distributions.items()},
            "user": trial.user_attrs, "system": trial.system_attrs,
            "intermediate": sorted(trial.intermediate_values.items()),
            "start": moment(trial.datetime_start), "complete": moment(trial.datetime_complete)}


def record(storage):
    """By study name; where attributes of a study hold ids of trials, their numbers stand here."""
    studies = {}
    for study in storage.get_all_studies():
        trials = storage.get_all_trials(study._study_id)
        numbers = {t._trial_id: t.number for t in trials}
        system = {k: sorted(numbers[i] for i in v) if "Sampler:parent:" in k else v
                  for k, v in study.system_attrs.items()}
        studies[study.study_name] = {"directions": [d.name for d in study.directions], "user": study.user_attrs,
                                     "system": system, "trials": [trial_record(t) for t in trials]}
    return json.dumps(studies, sort_keys=True, indent=1)


def record_of_file(path):
    return record(optuna.storages.RDBStorage(url(path)))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    print(record_of_file(sys.argv[2]))
