"""A clone goes on from its parent's checkpoint, with its own rate, and the parent from where it was."""
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import LONG_S, TunerTest, wait_for  # noqa: E402

from espalier import client  # noqa: E402
from espalier.errors import EspalierError  # noqa: E402

EPOCHS = 8
# The rate is halved every second epoch. A trial waits in its fourth epoch until it may go on.
PROGRAM = """
import pathlib, sys, time
import torch
import espalier
import espalier.torch as adl

trial = espalier.trial()
rate, width = trial.get("lr", 0.1), trial.get("width", 4)
torch.manual_seed(trial.seed)
net = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
x = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
loader = adl.AdaptiveDataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=20)
model = adl.AdaptiveDataParallel(net, optimizer, schedule)
for epoch in adl.remaining_epochs_until(%d):
    print("epoch", epoch, "rate", optimizer.param_groups[0]["lr"], "seed", trial.seed, flush=True)
    for inputs, wanted in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
    schedule.step()
    while epoch == 3 and trial.number == 0 and not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.05)
    trial.report(epoch + 1, loss.item())
""" % EPOCHS


class Clones(TunerTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.dir / "run"

    def begin(self):
        command = [sys.executable, self.write("train.py", PROGRAM), str(self.dir / "go")]
        study = self.study(command, trials=1, slots=1, points=[{"lr": 0.1, "width": 4}], env={
            "PYTHONPATH": str(ROOT / "python")}, search_space={
                "lr": {"_type": "loguniform", "_value": [0.001, 1]}, "width": {"_type": "choice", "_value": [4, 8]}})
        process = self.start("run", study, "--dir", self.run_dir, "--slots", 2)
        wait_for(lambda: "epoch 3" in self.printed(0) and (self.trial(0).get("checkpoint") or "").endswith("step-30.pt"), "the checkpoint", LONG_S)
        return process

    def printed(self, number):
        return "".join(path.read_text() for path in sorted(self.run_dir.glob(f"trials/e2e/trial-{number}/*.log")))

    def rates(self, number):
        return [(int(epoch), float(rate), int(seed)) for epoch, rate, seed in
                re.findall(r"epoch (\d+) rate (\S+) seed (\d+)", self.printed(number))]

    def trial(self, number):
        trials = self.export("--dir", self.run_dir)["trials"]
        return trials[number] if number < len(trials) else {}

    def clone(self, *assignments, code=0):
        words = [word for assignment in assignments for word in ("--set", assignment)]
        return self.run_tuner("clone", "e2e", 0, *words, "--dir", self.run_dir, code=code)

    def test_a_clone_has_its_own_rate_and_its_parents_state(self):
        process = self.begin()
        self.assertIn("trial 1 is a clone of trial 0", self.clone("lr=0.02").stdout)
        by_python = client.Client.at_home(client.address_in(self.run_dir)).clone("e2e", 0, {"width": 8})
        self.assertEqual(json.loads(by_python["parameters"]) if isinstance(by_python["parameters"], str) else
                         by_python["parameters"], {"lr": 0.1, "width": 8})
        with self.assertRaisesRegex(EspalierError, '"depth"'):
            client.Client.at_home(client.address_in(self.run_dir)).clone("e2e", 0, {"depth": 8})
        wait_for(lambda: self.trial(1).get("state") == "TRIAL_COMPLETE", "the clone to end", LONG_S)
        (self.dir / "go").touch()
        self.finish(process)

        lineage = self.trial(1)["lineage"]
        self.assertEqual((lineage["parent"], lineage["founder"], lineage["step"]), (0, 0, 30))
        parents, clones = self.rates(0), self.rates(1)
        self.assertEqual([epoch for epoch, _, _ in parents], list(range(EPOCHS)))
        self.assertEqual([epoch for epoch, _, _ in clones], list(range(3, EPOCHS)))
        for epoch, rate, seed in clones:
            self.assertAlmostEqual(rate, 0.02 * 0.5 ** (epoch // 2))
            self.assertEqual(seed, parents[0][2])
        for epoch, rate, _ in parents:
            self.assertAlmostEqual(rate, 0.1 * 0.5 ** (epoch // 2))
        self.assertEqual([value["step"] for value in self.trial(1)["values"]], list(range(4, EPOCHS + 1)))
        shown = self.run_tuner("show", "e2e", "--trial", 1, "--db", self.run_dir / "espalier.db").stdout
        self.assertIn("of trial 0, from its checkpoint of step 30", shown)

        other_width = self.trial(2)
        self.assertEqual(other_width["state"], "TRIAL_FAIL")
        self.assertIn("does not fit this program", other_width["last_output"])

    def test_what_cannot_be_cloned_is_refused_by_name(self):
        process = self.begin()
        self.assertIn('"lr"', self.clone("lr=7", code=2).stderr)
        self.assertIn("want name=value", self.clone("lr", code=2).stderr)
        self.assertIn("has these parameters itself", self.clone("lr=0.1", code=2).stderr)
        (self.dir / "go").touch()
        self.finish(process)


if __name__ == "__main__":
    unittest.main()
