"""Search spaces for nni_differential_test.py: random ones, about a third of them with something wrong."""

import random

NUMERIC = {"uniform": 2, "quniform": 3, "loguniform": 2, "qloguniform": 3, "normal": 2, "qnormal": 3,
           "lognormal": 2, "qlognormal": 3}
NAMES = ["lr", "batch_size", "momentum", "width", "n/A/p", "a b", "x", "y", "z", "n", "_", "ü", "0"]
OPTION_NAMES = ["A", "B", "sgd", "adam", "a/b", "none", "C"]


def number(rng, low, high):
    value = rng.uniform(low, high)
    return round(value) if rng.random() < 0.3 else value


def numeric_values(rng, kind):
    if "normal" in kind:
        values = [number(rng, -3, 3), rng.uniform(0.01, 2)]
    else:
        low = 10 ** rng.uniform(-6, 2) if "log" in kind else number(rng, -100, 100)
        values = [low, low + 10 ** rng.uniform(-3, 3)]
    if kind.startswith("q"):
        values.append(rng.choice([1, 2, 5, 0.5, 0.1, 0.3, 1e-3, 7.25]))
    return values


def options(rng):
    pool = [1, 2, 16, 32, -5, 0.5, 2.5, 1e-3, "relu", "gelu", "", "1", True, False, 9007199254740993, 2**63 - 1]
    return rng.sample(pool, rng.randint(1, 6))


def spec(rng, depth):
    kind = rng.choice([*NUMERIC, "choice", "choice", "randint", "randint", "nested", "nested"])
    if kind == "nested" and depth >= 3:
        kind = "choice"
    if kind == "nested":
        return {"_type": "choice",
                "_value": [{"_name": name, **space(rng, depth + 1, 0)}
                           for name in rng.sample(OPTION_NAMES, rng.randint(1, 3))]}
    if kind == "choice":
        return {"_type": kind, "_value": options(rng)}
    if kind == "randint":
        low = rng.choice([0, 1, -7, 100, -2**31, 2**40])
        return {"_type": kind, "_value": [low, low + rng.choice([1, 2, 3, 10, 1000, 2**32, 2**32 - 1, 2**45])]}
    return {"_type": kind, "_value": numeric_values(rng, kind)}


def space(rng, depth, least):
    return {name: spec(rng, depth) for name in rng.sample(NAMES, rng.randint(least, 4 if depth == 0 else 2))}


def spoil_numbers(rng, item):
    values = item["_value"]
    where = rng.randrange(len(values)) if values else 0
    how = rng.randrange(7)
    if how == 0:
        values.append(rng.choice([1, 0.5, "x"]))
    elif how == 1:
        values[where:where + 1] = []
    elif how == 2:
        values[where:where + 1] = [rng.choice(["1", None, [1], {"a": 1}, True, False])]
    elif how == 3:
        values[:2] = values[1::-1]
    elif how == 4:
        values[where:where + 1] = [rng.choice([0, -1, -0.5, 1e-300, 2.5])]
    elif how == 5:
        values[:2] = [rng.choice([1, 1.5])] * 2
    else:
        values[:2] = rng.choice([[-1.7e308, 1.7e308], [0, 1e-320], [-2**63, 2**63 - 1], [0, 2**63], [0, 2**64]])


def spoil_options(rng, item):
    values = item["_value"]
    how = rng.randrange(6)
    if how == 0:
        values.clear()
    elif how == 1:
        values.append(values[0] if values else 1)
    elif how == 2:
        values.extend([1, 1.0])
    elif how == 3:
        values.insert(rng.randint(0, len(values)), rng.choice([None, [1, 2], {"a": 1}, 2**63, {"_name": "D"}]))
    elif how == 4:
        values.insert(rng.randint(0, len(values)), {"_name": rng.choice([5, None, "", "A"])})
    else:
        item["_value"] = rng.choice([5, "abc", {}, None, {"0": 1}])


def spoil(rng, item):
    """Something wrong with one parameter."""
    how = rng.randrange(5)
    if how == 0:
        return rng.choice([5, "uniform", [0, 1], None, True, {}, {"_type": "uniform"}, {"_value": [0, 1]}])
    if how == 1:
        item["_type"] = rng.choice(["foo", "qrandint", "mutable_layer", "layer_choice", "input_choice", 5, None,
                                    "Uniform", "randint", "choice", "normal", "quniform", "loguniform"])
    elif item["_type"] == "choice":
        spoil_options(rng, item)
    else:
        spoil_numbers(rng, item)
    return item


def all_objects(generated):
    """The objects of parameters: the space and the options of its nested choices."""
    yield generated
    for item in generated.values():
        if isinstance(item, dict) and item["_type"] == "choice":
            for option in item["_value"]:
                if isinstance(option, dict):
                    yield from all_objects({name: value for name, value in option.items() if name != "_name"})


def generate(seed):
    rng = random.Random(seed)
    generated = space(rng, 0, 1)
    if rng.random() < 0.3:
        objects = [found for found in all_objects(generated) if found]
        chosen = rng.choice(objects)
        name = rng.choice(list(chosen))
        spoilt = spoil(rng, chosen[name])
        if chosen is generated:
            generated[name] = spoilt
    if rng.random() < 0.02:
        generated[rng.choice(["", "_name"])] = {"_type": "uniform", "_value": [0, 1]}
    if rng.random() < 0.05:
        generated[rng.choice(list(generated))] = {"_type": "choice", "_value": [1], "_default": 1, "comment": "x"}
    if rng.random() < 0.01:
        return rng.choice([[generated], 5, {}, "space", None])
    return generated
