"""scripts/bench.sh samplers --develop: how samplers do one after the other, on functions that no bar is about."""
import math
import statistics

from bench_run import usual_or_smoke
from sampler_calls import call, call_sampler

TRIALS = usual_or_smoke(1000, 20)
AFTER = (1, 2, 3, 5, 10)  # tenths of them
PLANS = ("tpe", "cmaes", "gp:100:cmaes", "gp:200:cmaes", "gp:300:cmaes", "gp:300:tpe", "gp:500:tpe")
NO_REGRET = 1e-9


def kind(function):
    """What functions are taken together: the number of parameters where all are floats, else each by itself."""
    kinds = {dimension["_type"] for dimension in function["space"].values()}
    floats = kinds == {"uniform"} and function["noise"] == 0
    return f"{len(function['space'])} floats" if floats else function["name"]


def develop(seeds):
    """Prints by kind and trials the mean over functions and seeds of the decimal logarithm of regret over tpe's."""
    functions = call("development_functions")
    regrets = {}
    for plan in usual_or_smoke(PLANS, PLANS[:2]):
        for line in call_sampler("quality", plan, TRIALS, seeds, *(f["name"] for f in functions)):
            regrets[plan, line["function"]] = [[max(r, NO_REGRET) for r in by_trial] for by_trial in line["regrets"]]
    for of_kind in dict.fromkeys(map(kind, functions)):
        names = [f["name"] for f in functions if kind(f) == of_kind]
        for tenth in AFTER:
            means = {}
            for plan in dict.fromkeys(plan for plan, _ in regrets):
                means[plan] = statistics.mean(
                    math.log10(mine[tenth - 1] / theirs[tenth - 1])
                    for name in names for mine, theirs in zip(regrets[plan, name], regrets["tpe", name]))
            print(f"{of_kind:24} {TRIALS * tenth // 10:5} trials  "
                  + "  ".join(f"{plan} {mean:+.2f}" for plan, mean in means.items()), flush=True)
    return {"functions": len(functions), "seeds": seeds}
