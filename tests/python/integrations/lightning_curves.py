"""What the tests of Lightning's Trainer have in common: trainers that say nothing, and trials of two replicas whose curve is
compared with that of one."""
import logging
import pathlib
import sys
import warnings

from harness import wait_for
from two_replicas import TwoReplicas

PROBE = pathlib.Path(__file__).resolve().parent / "lightning_trainer_probe.py"
PLAIN = {"accelerator": "cpu", "devices": 1, "logger": False, "enable_checkpointing": False, "enable_progress_bar": False,
         "enable_model_summary": False}
QUIET = {"enable_progress_bar": False, "enable_model_summary": False}
warnings.filterwarnings("ignore", module="lightning")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Curves(TwoReplicas):
    def submit(self, command, **keys):
        super().submit(command, {"lr": 0.003}, preload=["lightning.pytorch"], **keys)

    def outlasts(self, arguments, steps, batches=30, validations=1, rate=lambda epoch: 0.003, losses=1):
        """The trial keeps its curve over a second replica and the loss of the first. `steps`, `batches` and `validations`: of
        an epoch (`steps` may be a function: of the first so many epochs); `rate`: after an epoch; `losses`: of the first replica, at whatever moment of an epoch."""
        command = [sys.executable, str(PROBE), str(self.dir / "stop"), *arguments]
        self.submit(command)

        self.await_two()
        together = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > together + 1, "whole epochs of both")
        for _ in range(losses):
            self.lose_rank_0(PROBE)
        before = len(self.trial()["values"])
        wait_for(lambda: len(self.trial()["values"]) > before + 1, "whole epochs of its own")
        (self.dir / "stop").touch()
        done = self.await_end()
        self.assertEqual([int(v["step"]) for v in done["values"]], list(range(1, len(done["values"]) + 1)))
        for epoch, value in enumerate(done["values"], 1):
            extra = value["extra"]
            self.assertEqual((extra["steps"], extra["validations"]), (steps(epoch) if callable(steps) else epoch * steps,
                                                                      epoch * validations))
            self.assertAlmostEqual(extra["rate"] / rate(epoch), 1, 4)
        logged = [v["extra"].get("samples", 0.0) for v in done["values"]]
        partly = [samples for samples in logged if samples != batches * 32]
        self.assertLessEqual(len(partly), losses, "only where a replica was lost some of what it had logged is missing")
        self.assertTrue(all(0 <= samples < batches * 32 for samples in partly), partly)
        (self.dir / "stop").unlink()
        self.name += "_alone"
        self.submit([*command, "--epochs", str(len(logged))], slots={"min": 1, "max": 1})
        curve = [float(value["value"]) for value in self.await_end()["values"]]
        self.assertEqual(len(curve), len(logged))
        for epoch, (ours, one) in enumerate(zip(done["values"], curve), 1):
            self.assertAlmostEqual(float(ours["value"]), one, delta=0.02 * one, msg=f"epoch {epoch}")
