import espalier
from espalier import space

def objective(trial):                                        # or the path of a script, or a command
    error, lr = 1.0, trial.get("lr", 0.1)
    for step in range(1, 11):                                # the training; the loop above as well
        error *= abs(0.7 - lr)
        trial.report(step, error)

result = espalier.tune(objective, {"lr": space.loguniform(0.01, 1)}, metric="error", direction="minimize",
                       trials=4, slots=2, sampler="tpe", pruner="median")
print(result.best_value, result.best_parameters)
print(result.dataframe())                                    # one row a trial; steps=True: a trial and step
