"""scripts/bench.sh samplers --speed: processor time a suggestion."""
import http.client
import json
import os
import random
import statistics
import tempfile
import time

from bench_run import SMOKE, start_service, usual_or_smoke
from sampler_calls import call_peers, call_sampler, in_table, ours

TRIALS, MORE = usual_or_smoke((1000, 10_000), (30, 60))
# Key, the peer's sampler, ours, how many suggestions, and the bar.
BESIDE = (("tpe_over_optuna", "tpe", "tpe", 50, 0.05), ("tpe_over_rustuna", "rustuna_tpe", "tpe", 200, 1.0),
          ("cma_over_optuna", "cmaes", "cmaes", 200, 0.1), ("gp_over_optuna", "gp", "gp", 5, 0.1),
          ("qmc_over_optuna", "qmc", "qmc", 50, 0.1))
ALONE = ("tpe", "tpe_univariate", "cmaes", "nsga2", "nsga3", "qmc", "gp")
BOUNDED, BOUND_MS = ("tpe", "cmaes", "nsga2", "nsga3"), 50  # the longest suggestion at MORE trials
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def told(what, taken):
    middle = statistics.median(taken)
    print(f"{what}: median {middle:.4g} ms a suggestion, the longest {max(taken):.4g}", flush=True)
    return middle


def speed():
    """The figures, and which bars they miss."""
    figures, misses = {}, []
    for key, peer, name, suggestions, bar in BESIDE:
        if not in_table(name):
            print(f"{key}: our table has no {name}")
            continue
        suggestions = usual_or_smoke(suggestions, 2)
        mine = told(f"{name}, 6 floats, {TRIALS} trials", call_sampler("speed", name, 6, TRIALS, suggestions)[0])
        figures[f"{name}_ms"] = round(mine, 4)
        if SMOKE:
            continue
        theirs = told(f"  {peer} of the peer", json.loads(call_peers("speed", peer, 6, TRIALS, suggestions)))
        figures[key] = round(mine / theirs, 4)
        if figures[key] > bar:
            misses.append(key)
    for name in filter(in_table, ALONE):
        # A Gaussian process of so many trials is fitted for minutes.
        longest = [longest_of(name, dimensions, n) for dimensions, n in ((40, TRIALS), (6, MORE), (40, MORE))
                   if name != "gp" or n <= TRIALS][1:]
        if name in BOUNDED:
            figures[f"{name}_longest_ms"] = round(max(longest), 2)
            if max(longest) > BOUND_MS:
                misses.append(f"{name}_longest_ms")
    return figures | through_service(), misses


def longest_of(name, dimensions, trials):
    taken = call_sampler("speed", name, dimensions, trials, usual_or_smoke(20, 2))[0]
    told(f"{name}, {dimensions} floats, {trials} trials", taken)
    return max(taken)


def through_service():
    """TPE's suggestions asked of a service over HTTP, stored in SQLite: an ask, and the service's processor time for
    it and for the tell after it."""
    with (tempfile.TemporaryDirectory() as folder,
          start_service(os.path.join(folder, "service.db")) as (process, _, address)):
        connection = http.client.HTTPConnection(address, timeout=600)

        def post(path, body):
            connection.request("POST", f"/api/{path}", json.dumps(body))
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status < 300, content
            return json.loads(content)

        names, draws = [f"x{i}" for i in range(6)], random.Random(1)
        sampler, options = ours("tpe")
        post("studies", {"name": "speed", "ask_and_tell": True, "metric": "loss",
                         "sampler": {"name": sampler, **options},
                         "search_space": {name: {"_type": "uniform", "_value": [0, 1]} for name in names}})

        def run(fixed):
            begun = time.monotonic()
            trial = post("studies/speed/ask", {"parameters": fixed} if fixed else {})
            took = 1e3 * (time.monotonic() - begun)
            value = sum((x - 0.3) ** 2 for x in trial["parameters"].values())
            post(f"trials/{trial['trial_id']}/tell", {"state": "complete", "value": value})
            return took

        for _ in range(TRIALS):
            run({name: draws.random() for name in names})
        before = processor_s(process.pid)
        taken = [run(None) for _ in range(usual_or_smoke(200, 2))]
        spent = 1e3 * (processor_s(process.pid) - before) / len(taken)
    told(f"tpe, 6 floats, {TRIALS} trials, asked over HTTP", taken)
    return {"tpe_service_ask_p50_ms": round(statistics.median(taken), 3), "tpe_service_processor_ms": round(spent, 3)}


def processor_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND
