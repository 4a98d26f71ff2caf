"""The examples: their study files, each program alone, and one that is resized while it trains."""
import json
import re
import subprocess
import unittest

from harness import BIN, LONG_S, PATIENCE_S, ROOT, TunerTest

EXAMPLES = ROOT / "examples"
# What makes one epoch of each short.
SHORT = {
    "fashion_mnist": ["--epochs", "1", "--images", "4000", "--set", "width=2"],
    "resnet18": ["--epochs", "1", "--images", "40"],
    "char_lm": ["--epochs", "1", "--set", "hidden=8"],
    "spirals": ["--epochs", "1"],
}


def first_value(distribution):
    return distribution["_value"][0]


class Examples(TunerTest):
    def alone(self, program, *arguments, code=0):
        done = subprocess.run([BIN / program, *arguments], stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, code, f"{program} {arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def test_every_study_file_is_accepted(self):
        self.serve(self.dir / "pool.db")
        files = sorted(EXAMPLES.glob("*/study.json"))
        self.assertGreaterEqual(len(files), len(SHORT))
        for file in files:
            self.run_tuner("submit", file, "--service", self.grpc)
            self.assertEqual(self.export("--service", self.grpc, study=file.parent.name)["study"]["state"],
                             "STUDY_RUNNING")

    def test_each_trains_an_epoch_alone_and_knows_its_parameters(self):
        for program, arguments in SHORT.items():
            space = json.loads((EXAMPLES / program / "study.json").read_text())["search_space"]
            for name, distribution in space.items():
                if not any(word.startswith(name + "=") for word in arguments):
                    arguments = arguments + ["--set", f"{name}={first_value(distribution)}"]
            done = self.alone(program, *arguments)
            self.assertRegex(done.stdout, r"^report step=1 value=\d", program)
            self.assertNotIn("never asked", done.stderr, program)

    def test_both_optimizers_learn(self):
        for optimizer in ("adam", "sgd"):
            done = self.alone("char_lm", "--epochs", "3", "--set", "hidden=32", "--set", f"optimizer={optimizer}")
            bits = [float(value) for value in re.findall(r"value=(\S+)", done.stdout)]
            self.assertEqual(len(bits), 3)
            self.assertLess(bits[-1], bits[0], optimizer)

    def test_synthetic_images_in_mixed_precision_need_no_data_set(self):
        done = self.alone("resnet18", "--data", "synthetic", "--images", "16", "--epochs", "1",
                          "--set", "optimizer=adam", "--set", "batch_size=8", "--set", "precision=bf16")
        self.assertIn("report step=1", done.stdout)

    def test_bad_input_is_named(self):
        for arguments, word in ([["--text", "/does/not/exist"], "/does/not/exist"],
                                [["--epochs", "many"], "many"],
                                [["--epoch", "1"], "--epochs"],
                                [["--set", "optimizer=adamm"], "adamm"]):
            self.assertIn(word, self.alone("char_lm", *arguments, code=2).stderr)

    def test_language_model_is_resized_while_it_trains(self):
        run = self.dir / "run"
        study = self.study(self.beside_a_neighbour(run / "trials/e2e", [BIN / "char_lm", "--epochs", "30"]), trials=2,
                           search_space={"lr": {"_type": "uniform", "_value": [0.001, 0.003]}})
        self.run_tuner("run", study, "--dir", run, "--slots", 2, timeout=LONG_S)
        trial = self.export("--db", run / "espalier.db")["trials"][1]
        self.assertEqual((trial["state"], trial["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual(len(trial["values"]), 30)
        first = trial["resizes"][0]
        self.assertEqual((first["from_replicas"], first["to_replicas"]), (1, 2))


if __name__ == "__main__":
    unittest.main()
