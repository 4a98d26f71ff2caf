"""Programs for AdaptDL, alone and under a tuner, and what the alias package refuses."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "tests/e2e")]
import espalier  # noqa: E402
from elastic import elastic_multiprocessing, two_free_ports  # noqa: E402
from forked import alone, output_of  # noqa: E402
from harness import LONG_S, SharedPoolTest, wait_for  # noqa: E402

EXAMPLES = ROOT / "examples/python_adaptdl"
COLLECTIVE = HERE / "collective_program.py"


class Alone(unittest.TestCase):
    def test_a_line_is_fitted(self):
        # With an interpreter of its own, as users start it; those below are forked.
        done = subprocess.run([sys.executable, EXAMPLES / "linear_regression.py"], text=True, stdout=subprocess.PIPE, check=True)
        _, bias, _, weight = done.stdout.split()[-4:]
        self.assertAlmostEqual(float(bias), 3, delta=0.2)
        self.assertAlmostEqual(float(weight), 4, delta=0.2)

    def test_training_and_validation_loops(self):
        told = output_of(EXAMPLES / "tutorial.py")
        accuracies = re.findall(r"^epoch \d loss \d\.\d+ accuracy (\d\.\d+) of 500$", told, re.M)
        self.assertEqual(len(accuracies), 3, told)
        self.assertGreater(float(accuracies[-1]), 0.9, told)

    def test_loss_scaling_and_a_group_for_each_parameter(self):
        told = output_of(EXAMPLES / "cifar.py")
        self.assertGreater(float(re.findall(r"report step=3 value=(\S+)", told)[0]), 0.9, told)
        scalars = told.strip().splitlines()[-1].split()
        for tag in ("AdaptDL/Data/Total_Batch_Size", "AdaptDL/Model/Gain"):
            self.assertIn(tag, scalars)

    def test_collective_functions_and_states(self):
        self.assertIn("most replicas 1", output_of(COLLECTIVE))

    def test_training_goes_on_from_the_checkpoint_path(self):
        with tempfile.TemporaryDirectory() as folder:
            job = {"ADAPTDL_CHECKPOINT_PATH": folder, "ADAPTDL_NUM_REPLICAS": "1", "ADAPTDL_REPLICA_RANK": "0"}
            first = output_of(COLLECTIVE, 2, **job, ADAPTDL_NUM_RESTARTS="0")
            self.assertIn("epoch 1 ", first)
            second = output_of(COLLECTIVE, 4, **job, ADAPTDL_NUM_RESTARTS="1")
            self.assertNotIn("epoch 1 ", second)
            self.assertIn("epoch 2 ", second)

    @elastic_multiprocessing
    def test_a_job_has_a_process_group(self):
        import adaptdl.torch as adl
        import torch
        from adaptdl import collective, env
        adl.init_process_group("gloo")
        ranks = torch.ones(1) * env.replica_rank()
        torch.distributed.all_reduce(ranks)
        self.assertEqual(ranks.item(), sum(range(env.num_replicas())))
        self.assertEqual(collective.allreduce([env.replica_rank()]), list(range(env.num_replicas())))
        collective.teardown()
        with self.assertRaises(RuntimeError):
            collective.broadcast(1)
        return [3, 0][env.num_restarts()]

    @elastic_multiprocessing
    def test_a_job_goes_on_in_the_epoch_and_the_sums_that_it_saved(self):
        import adaptdl.checkpoint
        import adaptdl.torch as adl
        import torch
        from adaptdl import env
        from torch.utils.data import TensorDataset
        loader = adl.AdaptiveDataLoader(TensorDataset(torch.arange(30)), batch_size=10, shuffle=True)
        sums = adl.Accumulator()
        seen = []
        for epoch in adl.remaining_epochs_until(3):
            for numbers, in loader:
                sums["numbers"] += numbers.sum().item()
                sums["read"] += len(numbers)
            with sums.synchronized():
                seen.append((epoch, sums["numbers"], sums["read"]))
                sums.clear()
            if epoch == 1 and env.num_restarts() == 0:
                adaptdl.checkpoint.save_all_states()
                return 2
        self.assertEqual(seen, [(1, 435, 30), (2, 435, 30)], "epoch 1 from what was saved, and epoch 2 read again")
        return 0

    @alone
    def test_what_is_refused(self):
        import torch
        os.environ.update(ADAPTDL_NUM_REPLICAS="2", ADAPTDL_REPLICA_RANK="1")
        import adaptdl.collective
        import adaptdl.torch as adl
        from adaptdl.torch import data, gradient_noise_scale, iterator
        for refused in (data.AdaptiveDataLoaderHelper, data.AdaptiveDataLoaderMixin, iterator.AdaptiveBPTTIterator,
                        gradient_noise_scale.GradientNoiseScale):
            with self.assertRaisesRegex(espalier.UsageError, refused.__name__):
                refused()
        model = torch.nn.Linear(1, 1)
        with self.assertRaisesRegex(espalier.UsageError, "ADAPTDL_NUM_REPLICAS is 2"):
            adl.AdaptiveDataParallel(model, torch.optim.SGD(model.parameters(), 0.1))
        with self.assertRaisesRegex(RuntimeError, "has not been initialized"):
            adaptdl.collective.allreduce(1)
        with self.assertRaisesRegex(espalier.UsageError, "ADAPTDL_MASTER_PORT"):
            adaptdl.collective.initialize()

    @alone
    def test_a_process_of_a_job_that_dies_is_noticed(self):
        from adaptdl._exchange import Exchange
        port = two_free_ports()
        child = os.fork()
        if child == 0:
            other = Exchange("127.0.0.1", port, 1, 2)
            other.gather(b"once").result()
            os._exit(0)
        exchange = Exchange("127.0.0.1", port, 0, 2)
        self.assertEqual(exchange.gather(b"own").result(timeout=60), [b"own", b"once"])
        with self.assertRaisesRegex(espalier.TrialError, "a process of the job is gone"):
            exchange.gather(b"again").result(timeout=60)
        with self.assertRaisesRegex(espalier.TrialError, "a process of the job is gone"):
            exchange.gather(b"again").result(timeout=60)
        os.waitpid(child, 0)


JOB = """
apiVersion: adaptdl.petuum.com/v1
kind: AdaptDLJob
metadata:
  generateName: residual-
spec:
  maxReplicas: 2
  template:
    spec:
      containers:
      - name: main
        image: examples/residual:1
        command: ["{python}", "{program}"]
        args: ["$(END)"]
        env:
        - {{name: END, value: "{end}"}}
"""


class UnderATuner(SharedPoolTest):
    """Programs that go on until the file `end` is there, which is once they have grown."""

    def setUp(self):
        super().setUp()
        self.end = self.dir / "end"

    def grow_and_end(self):
        """The study's trial, which has completed."""
        self.await_two()
        epochs = lambda: len(self.export()["trials"][0]["values"])
        before = epochs()
        wait_for(lambda: epochs() > before + 1, "whole epochs of both", LONG_S)
        self.end.touch()
        wait_for(lambda: self.export()["study"]["state"] != "STUDY_RUNNING", "its end", LONG_S)
        trial = self.export()["trials"][0]
        self.assertEqual(trial["state"], "TRIAL_COMPLETE", self.logs() or str(trial))
        self.assertEqual([(r["from_replicas"], r["to_replicas"]) for r in trial["resizes"]][:1], [(1, 2)], self.logs())
        return trial

    def test_collective_functions_and_states(self):
        study = self.study([sys.executable, str(COLLECTIVE), "100000", str(self.end)], trials=1, max_restarts=0)
        self.run_tuner("submit", study, "--service", self.grpc)
        self.grow_and_end()
        self.assertIn("most replicas 2", self.logs())

    def test_a_job_for_kubernetes_runs_on_a_pool(self):
        job = self.write("job.yaml", JOB.format(python=sys.executable, program=HERE / "endless_cifar.py", end=self.end))
        said = self.run_tuner("submit", job, "--service", self.grpc)
        self.name = re.search(r"study (residual-\w{5}) submitted", said.stdout).group(1)
        self.studies.add(self.name)
        self.assertIn("ignored, as agents run the command", said.stderr)
        self.assertIn("spec.template.spec.containers[0].image", said.stderr)
        listed = wait_for(lambda: self.name in (out := self.run_tuner("ls", "--service", self.grpc).stdout) and out, "the job")
        self.assertRegex(listed, f"{self.name} .*RUNNING")
        self.assertEqual(self.grow_and_end()["parameters"], [])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
