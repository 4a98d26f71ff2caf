#!/usr/bin/env python3
"""Runs the real AdaptDL 0.2.11 and writes down what it computes: golden.json, which golden_test.cc
holds our code to.

    $(tests/benchmarks/peers/setup.sh) tests/trial_runner/golden/make_golden.py

Everything is seeded. Gradients are multiples of 1/64 and counts powers of two, so that AdaptDL's
single-precision squares and means are exact and the numbers test formulas, not rounding.

What AdaptDL needs under today's packages, and what is stood in for:
  - numpy.int, which numpy 1.24 removed: put back.
  - The default dtype is float64: Adam would otherwise keep its step count as a float32 tensor, and
    AdaptDL would compute 1 - beta2^t with five digits.
  - AdaptiveDataParallel is DistributedDataParallel with the estimator attached; here the two are
    put together by hand, for it takes batch sizes from a data loader, which would choose them.
  - LEGW asks the current data loader for its batch size: a stand-in answers.
"""
import argparse
import json
import pathlib
import tempfile
import types

import numpy as np
import portpicker
import torch
import torch.distributed
import torch.multiprocessing

np.int = int
import adaptdl.goodput
import adaptdl.torch.scaling_rules as rules
from adaptdl.torch.gradient_noise_scale import AdamGradientNoiseScale, GradientNoiseScale

SEED = 2026
GROUPS = (5, 3)        # parameters of each optimizer group
GRID = 64              # gradients are multiples of 1 / GRID
INITIAL_BATCH = 32
FACTOR_SCALES = (0.5, 1.0, 2.0, 6.0, 32.0)

# name: replicas, [(steps, microbatches a step, atomic batch size)], what is special
NOISE_CASES = {
    "two replicas": dict(replicas=2, phases=[(10, 1, 16)]),
    "four replicas, larger batch": dict(replicas=4, phases=[(10, 1, 32)]),
    "two replicas, four microbatches": dict(replicas=2, phases=[(10, 4, 24)]),
    "one replica, two microbatches": dict(replicas=1, phases=[(10, 2, 32)]),
    "one replica, previous gradient": dict(replicas=1, phases=[(12, 1, 32)]),
    "one replica, previous gradient, larger batch": dict(replicas=1, phases=[(12, 1, 128)]),
    "previous gradients, then microbatches": dict(replicas=1, phases=[(6, 1, 32), (6, 4, 32)]),
    "noise alone": dict(replicas=4, phases=[(10, 1, 8)], signal=0.0),
    "no noise": dict(replicas=2, phases=[(5, 1, 16)], noise=0.0),
    "loss scaled by 1024": dict(replicas=2, phases=[(8, 2, 16)], loss_scale=1024.0),
    "Adam, two replicas": dict(replicas=2, phases=[(14, 1, 32)], adam=True),
    "Adam, one replica": dict(replicas=1, phases=[(14, 1, 32)], adam=True),
    "Adam, microbatches": dict(replicas=2, phases=[(12, 2, 16)], adam=True),
}


def recorded_gradients(random, case):
    """[step][microbatch of any replica][parameter], as multiples of 1 / GRID."""
    size = sum(GROUPS)
    truth = case.get("signal", 1.0) * random.uniform(-2, 2, size)
    steps = []
    for count, microbatches, _ in case["phases"]:
        for _ in range(count):
            noise = case.get("noise", 1.0) * random.normal(size=(case["replicas"] * microbatches, size))
            steps.append((np.round((truth + noise) * GRID) / GRID).tolist())
    return steps


def factors(adp, optimizer):
    """By rule: at each of FACTOR_SCALES, by what each group's learning rate is multiplied."""
    found = {}
    for name, rule in (("adascale", rules.AdaScale()), ("adamscale", rules.AdamScale())):
        rule.initialize(adp, optimizer)
        found[name] = [rule.scale_lr(scale).tolist() for scale in FACTOR_SCALES]
    return found


class Replayed(torch.nn.Module):
    """One parameter a group; the gradient of its output is whatever it is given."""

    def __init__(self):
        super().__init__()
        self.groups = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(n)) for n in GROUPS])

    def forward(self, gradient):
        return sum((p * g).sum() for p, g in zip(self.groups, gradient.split(GROUPS)))


def replica(rank, case, gradients, port, folder):
    """One process of one case: replays the gradients and writes what rank 0 saw."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                                         world_size=case["replicas"])
    model = Replayed()
    adp = torch.nn.parallel.DistributedDataParallel(model)
    options = [{"params": [p]} for p in model.groups]
    adam = case.get("adam", False)
    optimizer = (torch.optim.Adam(options, lr=0.125, betas=(0.9, 0.99), eps=1e-8) if adam
                 else torch.optim.SGD(options, lr=0.125))
    loss_scale = case.get("loss_scale", 1.0)
    scaler = types.SimpleNamespace(get_scale=lambda: loss_scale) if loss_scale != 1.0 else None
    gns = (AdamGradientNoiseScale if adam else GradientNoiseScale)(adp, optimizer, mp_scaler=scaler)
    adp.gns = gns
    rule = rules.AdamScale() if adam else rules.AdaScale()
    rule.initialize(adp, optimizer, patch_optimizer=True)

    estimates = {}
    update = gns._update_avg
    gns._update_avg = lambda key, value, fade: (estimates.__setitem__(key, value.tolist()),
                                                update(key, value, fade))
    seen, step = [], 0
    for count, microbatches, atomic in case["phases"]:
        for _ in range(count):
            gns.set_accum_scale(atomic * case["replicas"] / INITIAL_BATCH)
            optimizer.zero_grad()
            estimates.clear()
            for i in range(microbatches):
                adp.require_backward_grad_sync = i + 1 == microbatches
                flat = torch.tensor(gradients[step][rank * microbatches + i])
                (adp(flat) * loss_scale).backward()
            scale = gns.accum_scale * gns.accum_count
            row = {"samples": atomic * case["replicas"] * microbatches,
                   "sqr": estimates.get("sqr_avg"), "var": estimates.get("var_avg"),
                   "sqr_avg": gns.raw_sqr_avg.tolist(), "var_avg": gns.raw_var_avg.tolist(),
                   "biased": gns._state["biased"], "gain": gns.gain(scale),
                   "factors": factors(adp, optimizer)}
            if adam:
                row["preconditioner"] = [v for i, p in enumerate(model.groups)
                                         for v in gns._calculate_preconditioner(i, p).tolist()]
            for p in model.groups:
                p.grad.div_(loss_scale * microbatches)  # which 0.2.11 leaves to the program
            optimizer.step()
            row["progress"] = gns.get_progress()
            seen.append(row)
            step += 1
    if rank == 0:
        (pathlib.Path(folder) / "case.json").write_text(json.dumps(seen))
    torch.distributed.destroy_process_group()


def noise_cases():
    random = np.random.RandomState(SEED)
    cases = []
    for name, case in NOISE_CASES.items():
        gradients = recorded_gradients(random, case)
        with tempfile.TemporaryDirectory() as folder:
            torch.multiprocessing.spawn(
                replica, (case, gradients, portpicker.pick_unused_port(), folder),
                nprocs=case["replicas"])
            steps = json.loads((pathlib.Path(folder) / "case.json").read_text())
        for step, gradient in zip(steps, gradients):
            step["gradients"] = gradient
        cases.append({"name": name, "replicas": case["replicas"], "initial_batch_size": INITIAL_BATCH,
                      "adam": case.get("adam", False), "loss_scale": case.get("loss_scale", 1.0),
                      "groups": list(GROUPS), "factor_scales": list(FACTOR_SCALES), "steps": steps})
        print(name, steps[-1]["sqr_avg"], steps[-1]["var_avg"])
    return cases


def plain_rule_cases():
    return [{"rule": name, "scale": scale, "factor": float(rule.scale_lr(scale))}
            for name, rule in (("linear", rules.LinearScale()), ("sqrt", rules.SqrtScale()))
            for scale in FACTOR_SCALES]


def legw_cases():
    """LEGW's factor for warm-up epochs at the base batch size, samples, batch sizes and progress."""
    cases = []
    for epochs, samples, batch in ((1, 1000, 10), (5, 45000, 128), (0.5, 777, 32)):
        rules.current_dataloader = lambda: types.SimpleNamespace(batch_size=batch)
        for scale in (1.0, 2.0, 8.5):
            for progress in (0.0, 3.7, 0.4 * epochs * samples / batch, 1e6):
                rule = rules.LEGWScale(epochs, samples)
                gns = types.SimpleNamespace(get_progress=lambda: progress)
                rule.adp = types.SimpleNamespace(gns=gns)
                cases.append({"warmup_epochs": epochs, "dataset_size": samples,
                              "initial_batch_size": batch, "scale": scale, "progress": progress,
                              "factor": rule.scale_lr(scale)})
    return cases


def model_times(params, shapes):
    """Microbatch and optimizer-step times that AdaptDL's model gives."""
    nodes, replicas, atomic = (np.array(column) for column in zip(*shapes))
    accum = adaptdl.goodput._predict_accum_time(params, atomic)
    network = adaptdl.goodput._predict_network_time(params, nodes, replicas)
    return accum, np.exp(adaptdl.goodput._predict_log_optim_time(params, accum, network))


TRUTHS = {
    "overlap": (0.02, 0.0005, 0.15, 0.007, 0.03, 0.0025, 1.6),
    "no overlap": (0.004, 0.0001, 0.02, 0.004, 0.01, 0.001, 1.0),
    "cheap network": (0.1, 0.003, 0.05, 0.001, 0.02, 0.0005, 3.0),
}
SHAPES = {
    "one shape": [(1, 1, 64)],
    "one replica, several sizes": [(1, 1, m) for m in (16, 32, 64, 128)],
    "up to two replicas": [(1, k, m) for k in (1, 2) for m in (32, 64, 128)],
    "one node": [(1, k, m) for k in (1, 2, 3, 4) for m in (32, 64, 128)],
    "one size, one node": [(1, k, 64) for k in (1, 2, 3, 4)],
    "several nodes": [(n, k, m) for n, k in ((1, 1), (1, 2), (1, 4), (2, 4), (2, 8), (4, 16))
                      for m in (32, 64, 128)],
    "always several nodes": [(2, k, m) for k in (2, 4, 8) for m in (32, 64)],
}
PREDICTED = [(1, 1, 48, 0), (1, 2, 48, 1), (1, 4, 96, 0), (2, 6, 96, 3), (4, 16, 256, 0)]


def fit_cases():
    random = np.random.RandomState(SEED + 1)
    cases = []
    for truth_name, truth in TRUTHS.items():
        truth = adaptdl.goodput.PerfParams(*truth)
        for shapes_name, shapes in SHAPES.items():
            for noise in (0.02, 0.1):
                accum, optim = model_times(truth, shapes)
                accum = accum * np.exp(noise * random.normal(size=len(shapes)))
                optim = np.maximum(optim * np.exp(noise * random.normal(size=len(shapes))), 1.001 * accum)
                nodes, replicas, atomic = (np.array(column) for column in zip(*shapes))
                params = adaptdl.goodput.fit_perf_params(nodes, replicas, atomic, accum, optim)
                value = adaptdl.goodput._obj_fn(params, nodes, replicas, atomic, accum, optim)
                predict = adaptdl.goodput.GoodputFunction(params, (1.0, 1.0), 1)
                cases.append({
                    "name": f"{truth_name}, {shapes_name}, noise {noise}", "shapes": shapes,
                    "grad_times_s": accum.tolist(), "optim_times_s": optim.tolist(),
                    "params": params._asdict(), "objective": float(value),
                    "throughputs": [{"shape": shape, "samples_per_s": float(predict.throughput(*shape))}
                                    for shape in PREDICTED]})
    return cases


def goodput_cases():
    cases = []
    for truth_name, truth in TRUTHS.items():
        for sqr, var in ((0.0, 1.0), (0.5, 2.0), (3.0, 1.0), (0.002, 4.0)):
            for initial, largest, bounds, accumulation in (
                    (128, 128, (1, 128), True), (128, 4096, (1, 256), True), (100, 5000, (1, 5000), True),
                    (64, 1024, (1, 1024), False)):
                function = adaptdl.goodput.GoodputFunction(truth, (sqr, var), initial)
                for nodes, replicas in ((1, 1), (1, 2), (1, 3), (1, 4), (2, 8), (4, 16)):
                    # Without accumulation AdaptDL does not let one replica grow its batch; ours does.
                    if replicas == 1 and not accumulation:
                        continue
                    goodput, atomic, accum = function.optimize(nodes, replicas, largest, bounds, accumulation)
                    cases.append({
                        "params": dict(zip(adaptdl.goodput.PerfParams._fields, truth)), "sqr": sqr,
                        "var": var, "initial": initial, "max_global": largest, "min_atomic": bounds[0],
                        "max_atomic": bounds[1], "accumulation": accumulation, "nodes": nodes,
                        "replicas": replicas, "goodput": goodput, "atomic_batch_size": atomic,
                        "accumulation_steps": accum,
                        "throughput": float(function.throughput(nodes, replicas, atomic, accum)),
                        "efficiency": float(function.efficiency(replicas * atomic * (accum + 1)))})
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=pathlib.Path(__file__).with_name("golden.json"))
    out = pathlib.Path(parser.parse_args().out)
    golden = {"adaptdl": "0.2.11", "torch": torch.__version__, "noise": noise_cases(),
              "plain_rules": plain_rule_cases(), "legw": legw_cases(), "fits": fit_cases(),
              "goodputs": goodput_cases()}
    lines = []
    for key, value in golden.items():
        if isinstance(value, list):
            value = "[\n" + ",\n".join(json.dumps(case) for case in value) + "\n]"
        else:
            value = json.dumps(value)
        lines.append(f"{json.dumps(key)}: {value}")
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{out}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
