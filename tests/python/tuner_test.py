"""Programs in Python under a real tuner: they grow, lose a replica, pause and come to their end like others."""
import json
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, SharedPoolTest, wait_for  # noqa: E402

FORKED = """
import os, pathlib, sys
import torch
import espalier, espalier.torch as adl

def read(process, file):
    try:
        return pathlib.Path(f"/proc/{process}/{file}").read_text()
    except OSError:  # it has ended
        return ""

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.rand(4), torch.rand(1)

if __name__ == "__main__":
    trial = espalier.trial()
    torch.manual_seed(trial.seed)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model = adl.AdaptiveDataParallel(model, optimizer)
    # A worker that is spawned imports this module anew.
    how = "spawn" if trial.number == int(sys.argv[1]) else "fork"
    loaders = [adl.AdaptiveDataLoader(Data(), batch_size=16, shuffle=shuffle, num_workers=1, multiprocessing_context=how)
               for shuffle, how in ((True, "fork"), (False, how))]
    total = 0.0
    for epoch in adl.epochs(1):
        for x, y in loaders[0]:
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        for x, y in loaders[1]:
            total += torch.nn.functional.mse_loss(model(x), y).item()
    assert not torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork()
    # Reading others' command lines says whether the agent has one that imports ahead.
    parents = {p: read(p, "stat").rpartition(")")[2].split()[1:2] for p in os.listdir("/proc") if p.isdigit()}
    zygotes = sum("espalier._zygote" in read(p, "cmdline") for p, parent in parents.items() if parent == [str(os.getppid())])
    trial.report(1, total, zygotes=zygotes, forked="espalier._zygote" in sys.modules)
"""
APART = """
import torch
import espalier, espalier.torch as adl

trial = espalier.trial()
model, data = torch.nn.Linear(4, 1), torch.utils.data.TensorDataset(torch.rand(400, 4), torch.rand(400, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
model = adl.AdaptiveDataParallel(model, optimizer)
loader = adl.AdaptiveDataLoader(data, batch_size=20)
sums = [adl.Accumulator(), adl.Accumulator()]
apart = trial.get("apart", "")
for epoch in adl.epochs(2):
    for i, (x, y) in enumerate(loader):
        if apart in ("steps", "epochs") and i == 5 and model.rank == 1:
            break
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    if apart == "sums" and model.rank == 1:
        sums.reverse()
    if apart == "evaluation" and model.rank == 1:
        adl.evaluate(lambda indices: {"count": len(indices)}, 100, 10)
    for each in sums if apart != "epochs" else ():
        with each.synchronized():
            pass
    if apart == "batch":
        loader.set_batch_size(20 + 20 * model.rank)
"""
SCHEDULED = """
import pathlib, sys
from time import sleep as pause
import torch
import espalier, espalier.torch as adl

trial = espalier.trial()
stop = pathlib.Path(sys.argv[1])
model, data = torch.nn.Linear(4, 1), torch.utils.data.TensorDataset(torch.rand(20, 4), torch.rand(20, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
model = adl.AdaptiveDataParallel(model, optimizer, schedule)
loader = adl.AdaptiveDataLoader(data, batch_size=20)

def validate(_):
    pause(0.1)  # so that most changes of the group are announced here
    return {"stop": stop.exists()}

for epoch in adl.epochs(100_000):
    for x, y in loader:
        pause(0.01)
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    done = adl.evaluate(validate, 1, 1)["stop"]
    schedule.step()
    rate, right = optimizer.param_groups[0]["lr"], 0.01 * 0.999 ** epoch
    assert abs(rate / right - 1) < 1e-9, f"replica {model.rank} has stepped its schedule {rate / right:.4f} too far"
    trial.report(epoch, 0.0)
    if done:
        break
"""
EXITS = """
import argparse, sys
import espalier

def leave(how):
    if how == "text":
        sys.exit("FATAL: data set not found")
    if how == "raised":
        raise SystemExit(4)
    if how == "arguments":
        parser = argparse.ArgumentParser()
        parser.add_argument("--data", required=True)
        parser.parse_args()
    if how == "exit":
        exit(5)
    if how == "caught":
        try:
            sys.exit(6)
        except SystemExit:
            pass
    if how == "zero":
        sys.exit()
    if how == "raised_zero":
        raise SystemExit(0)

trial = espalier.trial()
how = trial.get("how", "")
if how != "arguments":
    trial.report(1, 0.5)
leave(how)
"""
EXAMPLE = ROOT / "examples/python_fashion_mnist/fashion_mnist.py"
SPACE, METRIC = {"lr": {"_type": "loguniform", "_value": [0.01, 0.05]}}, {"name": "accuracy", "direction": "maximize"}


class Tuner(SharedPoolTest):
    def submit(self, study, code=0):
        """The study's trials, once it has ended."""
        self.run_tuner("submit", study, "--service", self.grpc, "--wait", timeout=LONG_S, code=code)
        return self.export()["trials"]

    def trial(self, *where):
        return self.export(*where)["trials"][0]

    def log(self, trial):
        return self.logs() or str(trial)

    def test_a_lone_trial_grows_and_ends_by_itself(self):
        command = [sys.executable, EXAMPLE, "--epochs", 30, "--samples", 4000]
        study = self.study(self.beside_a_neighbour(self.folder(), command), trials=2, search_space=SPACE, metric=METRIC)
        trial = self.submit(study)[1]
        self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.log(trial))
        self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, 31)))
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in trial["resizes"]][0], (1, 2))
        self.assertEqual(trial["restarts"], 0)
        self.assertGreater(float(trial["values"][-1]["value"]), 0.5)

    def test_who_joins_at_an_epochs_end_does_not_step_the_schedule_again(self):
        stop = self.dir / "stop"
        study = self.study([sys.executable, self.write("scheduled.py", SCHEDULED), str(stop)], trials=1, max_restarts=0)
        self.run_tuner("submit", study, "--service", self.grpc)
        self.await_two()
        epochs = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > epochs + 1, "epochs of both")
        stop.touch()
        wait_for(lambda: self.trial()["state"] in ("TRIAL_COMPLETE", "TRIAL_FAIL"), "its end")
        trial = self.trial()
        self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.log(trial))
        self.assertNotIn("too far", self.log(trial))  # the trial would have survived the replica

    def test_an_exception_fails_the_trial_and_is_in_its_log(self):
        script = self.write("broken.py", "import espalier\ntrial = espalier.trial()\ntrial.report(1, 0.5)\n"
                                         "raise ValueError('on purpose')\n")
        study = self.study([sys.executable, script], trials=1, max_restarts=0)
        (trial,) = self.submit(study, code=1)
        self.assertEqual(trial["state"], "TRIAL_FAIL")
        self.assertIn("ValueError: on purpose", self.log(trial))

    def test_an_exit_code_fails_the_trial_with_its_output(self):
        # With the reason, and what is in the output.
        failed = {"text": ("exited with code 1", "FATAL: data set not found"), "raised": ("exited with code 4", ""),
                  "arguments": ("exited with code 2", "required: --data"), "exit": ("exited with code 5", "")}
        complete = ["caught", "zero", "raised_zero"]
        script = self.write("exits.py", EXITS)
        # Each has an interpreter of its own, or is forked as soon as there is something to fork it from.
        for keys, hows in (({"preload": False}, [*failed, *complete]), ({}, ["caught", "zero", "raised", "text"])):
            self.name += f"_{len(hows)}"
            study = self.study([sys.executable, script], trials=len(hows), max_restarts=0, sampler="grid", **keys,
                               search_space={"how": {"_type": "choice", "_value": hows}})
            trials = {json.loads(t["parameters"][0]["json"]): t for t in self.submit(study)}
            for how in hows:
                with self.subTest(how, **keys):
                    trial = trials[how]
                    if how in complete:
                        self.assertEqual((trial["state"], trial["value"]), ("TRIAL_COMPLETE", 0.5))
                    else:
                        self.assertEqual((trial["state"], trial["reason"]), ("TRIAL_FAIL", failed[how][0]))
                        self.assertIn(failed[how][1], trial["last_output"])

    def test_replicas_whose_loops_differ_are_told_where_each_of_them_waits(self):
        where = {"steps": ("step 7", "the sums of Accumulator 1 after step 6"),
                 "epochs": ("step 7", "the end of epoch 0 after step 6"),
                 "batch": [f"the end of epoch 0 after step 20, with a batch of {n} samples for the next one" for n in (20, 40)],
                 "evaluation": ("the sums of Accumulator 1 after step 20", "evaluation 0 after step 20"),
                 "sums": ("the sums of Accumulator 1 after step 20", "the sums of Accumulator 2 after step 20")}
        study = self.study([sys.executable, self.write("apart.py", APART)], trials=len(where), max_restarts=0, sampler="grid",
                           search_space={"apart": {"_type": "choice", "_value": list(where)}},
                           slots={"min": 2, "max": 2})
        trials = self.submit(study, code=1)
        self.assertEqual(len(trials), len(where))
        for trial in trials:
            first, second = where[json.loads(trial["parameters"][0]["json"])]
            self.assertEqual(trial["state"], "TRIAL_FAIL", self.log(trial))
            self.assertIn(f"the replicas' loops differ: replica 0 waits at {first}, replica 1 at {second}: all of them",
                          self.log(trial))

    def test_later_trials_are_forked_and_come_to_the_same(self):
        script = self.write("forked.py", FORKED)
        keys = {"search_space": {"seed": {"_type": "choice", "_value": [5]}, "x": {"_type": "uniform", "_value": [0, 1]}}}
        self.run_tuner("run", self.study([sys.executable, script, "8"], trials=9, **keys), "--dir", self.dir / "run",
                       "--slots", 1, timeout=LONG_S)
        self.run_tuner("run", self.study([sys.executable, script, "-1"], trials=1, preload=False, **keys), "--dir",
                       self.dir / "own", "--slots", 1)
        trials = self.export("--db", self.dir / "run/espalier.db")["trials"]
        own = self.trial("--db", self.dir / "own/espalier.db")
        for trial in [*trials, own]:
            self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.log(trial))
        said = [trial["values"][-1]["extra"] for trial in trials]
        self.assertEqual((said[0]["forked"], said[0]["zygotes"]), (0, 1))
        forked = [each["forked"] for each in said]
        self.assertIn(1, forked)
        # One that gets no processor for 2 s when it is to fork is given up, and until there is another one nobody is forked.
        given_up = (self.dir / "run/tuner.log").read_text().count("was to be forked into replicas is given up")
        self.assertLessEqual(sum(before > after for before, after in zip(forked, forked[1:])), given_up)
        if not given_up:
            self.assertEqual((said[8]["forked"], said[8]["zygotes"]), (1, 1))
        self.assertEqual(own["values"][-1]["extra"], {"forked": 0, "zygotes": 0})
        self.assertEqual(len({trial["values"][-1]["value"] for trial in [*trials, own]}), 1)

    def test_a_script_without_a_loop_reports_and_is_complete(self):
        script = self.write("plain.py", "import espalier\ntrial = espalier.trial()\n"
                                        "(trial.directory / 'mine.txt').write_text(f'{trial.study} {trial.number}')\n"
                                        "trial.report(1, trial.get('x', 0.0) * 2)\n")
        space = {"x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "choice", "_value": [1, 2]}}
        for trial in self.submit(self.study([sys.executable, script], trials=2, search_space=space)):
            self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.log(trial))
            number = trial["number"]
            self.assertEqual((self.folder() / f"trial-{number}/mine.txt").read_text(), f"{self.name} {number}")
        shown = self.run_tuner("show", self.name, "--service", self.grpc).stdout
        self.assertIn('note: no complete trial has asked for the parameter "y"', " ".join(shown.split()))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
