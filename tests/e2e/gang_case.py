"""What tests of the scripts in tests/e2e/gang share: a study of two ranks, and what must have become of its trials."""
import pathlib
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent / "gang"


class GangCase:
    """Of a TunerTest: trial 0 trains, and rank 1 of trial 1 dies."""

    def gang_study(self, launch, script, notes, **variables):
        """`notes`: the folder for what ranks write of a trial."""
        command = [sys.executable, str(SCRIPTS / script), "--lr", "{lr}", "--notes", str(notes), "--fault", "{fault}"]
        return self.study(command, launch=launch, env=variables, slots=2, trials=None, sampler="grid", stop_grace_s=1,
                          search_space={"lr": {"_type": "choice", "_value": [0.05]},
                                        "fault": {"_type": "choice", "_value": ["none", "signal:1"]}},
                          metric={"name": "loss", "from_output": "step=(?P<step>[0-9]+) loss=(.*)"}, max_restarts=0)

    def assert_gang_trained(self, trial, notes):
        self.assertEqual(trial["state"], "TRIAL_COMPLETE", trial)
        self.assertEqual([int(value["step"]) for value in trial["values"]], [1, 2, 3])
        models = [(notes / f"model-{rank}").read_text() for rank in range(2)]
        self.assertTrue(models[0].startswith("0.05 "), models)
        self.assertEqual(models[0], models[1], "they have averaged their gradients")

    def assert_rank_is_blamed(self, trial, host=r"\S+"):
        """`host`: a pattern of the name of that rank's machine."""
        self.assertEqual(trial["state"], "TRIAL_FAIL", trial)
        self.assertRegex(trial["reason"], rf"^rank 1 of 2 on {host} was killed by signal 11(\n|$)")
        self.assertIn("rank 1 of 2: step=2", trial["last_output"])
