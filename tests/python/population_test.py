"""A population trains on fewer slots than members: the worst take over from the best, and the record says from whom."""
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TunerTest  # noqa: E402

EPOCHS = 9
# The larger the rate, up to 0.5, the sooner it learns.
PROGRAM = """
import sys
import time
import torch
import espalier
import espalier.torch as adl

trial = espalier.trial()
print("forked", "espalier._zygote" in sys.modules, flush=True)
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=trial.get("lr", 0.1))
x = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
loader = adl.AdaptiveDataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=50)
model = adl.AdaptiveDataParallel(net, optimizer)
for epoch in adl.remaining_epochs_until(%d):
    for inputs, wanted in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
    with torch.no_grad():
        loss = torch.nn.functional.mse_loss(model.module(x), x.sum(1, keepdim=True)).item()
    time.sleep(0.4)  # a larger net, which does not outrun the service where the machine stands still
    print("epoch", epoch, "rate", optimizer.param_groups[0]["lr"], flush=True)
    trial.report(epoch + 1, loss)
""" % EPOCHS


class Population(TunerTest):
    def test_the_worst_take_over_from_the_best(self):
        folder = self.dir / "run"
        study = self.study([sys.executable, self.write("train.py", PROGRAM)], trials=4, slots=1, seed=5,
                           points=[{"lr": rate} for rate in (0.0001, 0.001, 0.01, 0.1)], env={"PYTHONPATH": str(ROOT / "python")},
                           search_space={"lr": {"_type": "loguniform", "_value": [0.0001, 0.4]}}, max_step=EPOCHS,
                           population={"interval": 3, "parameters": ["lr"], "resample_probability": 0})
        process = self.start("run", study, "--dir", folder, "--slots", 2)
        self.finish(process)
        trials = self.export("--dir", folder)["trials"]
        for trial in trials:
            trial["parameters"] = {each["name"]: json.loads(each["json"]) for each in trial["parameters"]}
        printed = [path.read_text() for path in folder.glob("trials/e2e/*/*.log")]
        self.assertEqual({word for text in printed for word in re.findall(r"forked (\S+)", text)}, {"True"}, "of one import")
        clones = [trial for trial in trials if trial["lineage"]]
        self.assertTrue(clones, "nobody has taken over")
        for trial in clones:
            parent = trials[trial["lineage"]["parent"]]
            ratio = trial["parameters"]["lr"] / parent["parameters"]["lr"]
            self.assertTrue(min(abs(ratio - 0.8), abs(ratio - 1.2)) < 1e-9 or trial["parameters"]["lr"] == 0.4, ratio)
            if not trial["values"]:
                continue
            first = trial["values"][0]["step"]
            self.assertGreater(first, 1)
            self.assertEqual(first, trial["lineage"]["step"] // 4 + 1, "it goes on from the step that was saved")
            printed = "".join(path.read_text() for path in folder.glob(f"trials/e2e/trial-{trial['number']}/*.log"))
            self.assertEqual({float(rate) for rate in re.findall(r"rate (\S+)", printed)}, {trial["parameters"]["lr"]})
        ended = [trial for trial in trials if trial["state"] == "TRIAL_PRUNED"]
        self.assertEqual(len(ended), len(clones))
        for trial in ended:
            self.assertRegex(trial["reason"], r"at step \d+ it is among the worst, and trial \d+ among the best")
        complete = [trial for trial in trials if trial["state"] == "TRIAL_COMPLETE"]
        self.assertEqual(len(complete), 4, "as many members as at first")
        best = min(complete, key=lambda trial: trial["value"])
        self.assertGreater(best["parameters"]["lr"], 0.01)
        self.assertNotIn(trials[0], complete, "the one that learns nothing")

    def test_members_whose_batch_grows_are_compared_at_equal_progress(self):
        folder = self.dir / "run"
        # When it grows follows from measured times. Of at most twice the batch, nine epochs are worth four of the first at the least: one
        # comparison and more.
        program = PROGRAM.replace("model = adl.Adaptive", "loader.autoscale_batch_size(100)\nmodel = adl.Adaptive")
        study = self.study([sys.executable, self.write("train.py", program)], trials=4, slots=1, seed=5, batch_mode="adaptive",
                           points=[{"lr": rate} for rate in (0.0001, 0.001, 0.01, 0.1)], env={"PYTHONPATH": str(ROOT / "python")},
                           search_space={"lr": {"_type": "loguniform", "_value": [0.0001, 0.4]}}, max_step=EPOCHS,
                           population={"interval": 3, "parameters": ["lr"], "resample_probability": 0})
        self.finish(self.start("run", study, "--dir", folder, "--slots", 2))
        trials = self.export("--dir", folder)["trials"]
        clones = [trial for trial in trials if trial["lineage"] and trial["values"]]
        self.assertTrue(clones, "nobody has taken over")
        for trial in clones:
            first = trial["values"][0]
            line, before = trial, []
            while not before:  # a clone may have saved nothing of its own
                line = trials[line["lineage"]["parent"]]
                before = [value for value in line["values"] if value["step"] < first["step"]]
            self.assertGreater(first["progress"], before[-1]["progress"], "it goes on from its parent's")
        for trial in trials:
            if trial["state"] == "TRIAL_PRUNED":
                self.assertRegex(trial["reason"], r"at step \d+ it is among the worst.*\(steps at equal progress\)")


if __name__ == "__main__":
    unittest.main()
