"""A study by Optuna's own client: optuna_client.py HOST:PORT TRIALS. 2 parameters, 5 reports, 1 attribute a trial."""
import json
import sys
import time
import uuid

import optuna
from optuna.storages import GrpcStorageProxy

host, port = sys.argv[1].rsplit(":", 1)
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = GrpcStorageProxy(host=host, port=int(port))
storage.wait_server_ready(timeout=60)
study = optuna.create_study(study_name=f"client-{uuid.uuid4()}", storage=storage,
                            sampler=optuna.samplers.RandomSampler(seed=1), pruner=optuna.pruners.NopPruner())


def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    y = trial.suggest_float("y", 1e-5, 1, log=True)
    for step in range(5):
        trial.report(x * x + step, step)
    trial.set_user_attr("note", "hello")
    return x * x + y


study.optimize(objective, n_trials=10)
start = time.perf_counter()
study.optimize(objective, n_trials=int(sys.argv[2]))
print(json.dumps({"trials_per_s": int(sys.argv[2]) / (time.perf_counter() - start)}))
