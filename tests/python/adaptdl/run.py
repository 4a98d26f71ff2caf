"""AdaptDL's own tests against Espalier's `adaptdl`: those of its wheel that ask for what a program may rely on. The
others are named with the reason.
usage: run.py FOLDER (as scripts/setup-adaptdl.sh prints it)"""
import ast
import collections
import importlib.machinery
import json
import os
import pathlib
import sys
import traceback
import types

TO_PASS = {
    "accumulator_test": ["test_accumulator_restarts"],
    "checkpoint_test": ["test_duplicate", "test_save_load"],
    "collective_test": ["test_allreduce", "test_allreduce_async", "test_broadcast"],
    "data_test": ["test_sampler_epoch", "test_sampler_shuffle", "test_sampler_index", "test_dataloader_break"],
    "epoch_test": ["test_epoch"],
    "parallel_test": ["test_single_replica_parallel"],
    "scaling_rules_test": ["test_scaling_rules_1", "test_scaling_rules_2", "test_scaling_rules_3",
                           "test_scaling_rules_4"],
}

_NOISE = "constructs GradientNoiseScale, which is internal: noise is measured where gradients are reduced"
_METRICS = "looks into AdaptDL's collection of metrics, which is internal"
_GOODPUT = "AdaptDL's model of goodput is a module of its own; the allocator's has its own tests"
REFUSED = {
    "data_test": {
        "test_dataloader_restarts": "wants shares that are rounded up (3, 3, 3, 3 of 10): ours are 3, 3, 2, 2",
        "test_bptt_iterator": "torchtext has no BPTTIterator any more",
    },
    "scaling_rules_test": {"test_optimization_1": _NOISE, "test_optimization_2": _NOISE, "test_optimization_3": _NOISE,
                           "test_gradient_accumulation_optimization_1": _NOISE,
                           "test_gradient_accumulation_optimization_2": _NOISE},
    "gradient_noise_scale_test": {"*": _NOISE},
    "_metrics_test": {"*": _METRICS},
    "fit_test": {"*": _GOODPUT},
    "goodput_test": {"*": _GOODPUT},
    "reducer_test": {"*": "constructs the Reducer behind adaptdl.collective, which is internal"},
}

HERE = pathlib.Path(__file__).parent


def stand_ins():
    """Modules that the tests import, under the names of what they replace."""
    sys.path.insert(0, str(HERE))
    import elastic
    sys.modules["adaptdl.conftest"] = elastic
    # data_test imports torchtext for its test of BPTTIterator.
    text, text_data, utils = (types.ModuleType(name) for name in
                              ("torchtext", "torchtext.data", "torchtext.data.utils"))
    text.data, text_data.utils, utils.get_tokenizer = text_data, utils, None
    for module in (text, text_data, utils):
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
        sys.modules[module.__name__] = module


class Outcomes:
    """A plugin of pytest: what has become of each function, over all of its cases."""

    def __init__(self):
        self.cases = collections.Counter()
        self.failed = set()

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("::")[-1].split("[")[0]
        if report.when == "call":
            self.cases[name] += 1
        if report.outcome != "passed":
            self.failed.add(name)


def run_module(file, functions):
    """In a process of its own, since a process has one trial. Returns the cases of each function that passed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            import pytest
            stand_ins()
            outcomes = Outcomes()
            pytest.main(["--import-mode=importlib", "--noconftest", "-p", "no:cacheprovider", "-q", "--no-header",
                         "--tb=short", "-W", "ignore", "--rootdir", str(file.parent),
                         *(f"{file}::{function}" for function in functions)], plugins=[outcomes])
            passed = {name: count for name, count in outcomes.cases.items() if name not in outcomes.failed}
            os.write(write, json.dumps(passed).encode())
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        said = source.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {}


def functions_in(file):
    return [node.name for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


def main():
    folder = pathlib.Path(sys.argv[1])
    site_packages = next((folder / "venv").glob("lib/python3*/site-packages"))
    sys.path.append(str(site_packages))  # pytest's
    import torch
    import torch._dynamo  # noqa: F401  what each process would import
    torch.set_num_threads(1)

    passed, failed, refused = [], [], []
    for file in sorted((folder / "tests").glob("*_test.py")):
        module = file.stem
        present, to_pass, reasons = functions_in(file), TO_PASS.get(module, []), REFUSED.get(module, {})
        outcome = run_module(file, to_pass) if to_pass else {}
        for function in sorted(set(present) | set(to_pass), key=(present + to_pass).index):
            name = f"{module}.{function}"
            if function in to_pass:
                (passed if function in outcome else failed).append(name)
                cases = outcome.get(function, 0)
                print(f"{'passed ' if cases else 'FAILED '} {name}" + (f" ({cases} cases)" if cases > 1 else ""))
            elif reason := reasons.get(function) or reasons.get("*"):
                refused.append(name)
                print(f"refused {name}: {reason}")
            else:
                failed.append(name)
                print(f"FAILED  {name}: neither run nor refused")
    print(f"AdaptDL's own tests: {len(passed)} passed, {len(failed)} failed, {len(refused)} refused")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
