"""An AdaptDLJob of several replicas, each in a pod of its own: a program for AdaptDL trains, loses a pod and ends. On the
API server and scheduler that tests/e2e/kubernetes has."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
E2E = HERE.parents[1] / "e2e"
PROGRAM = HERE.parents[2] / "examples/python_adaptdl/cifar.py"
sys.path[:0] = [str(E2E), str(E2E / "kubernetes")]
from hosts import run_inside  # noqa: E402

run_inside(__file__)

from adaptdl_jobs_test import AdaptDLJobs  # noqa: E402
from harness import wait_for  # noqa: E402

REPLICAS = 2
EPOCHS = 14
NEEDED = ("PYTHONPATH", "ESPALIER_TORCH_LIBRARY")  # where the image has not installed espalier


class SeveralReplicas(AdaptDLJobs):
    def test_it_trains_in_two_pods_and_goes_on_when_one_is_taken(self):
        variables = {"OMP_NUM_THREADS": "1", **{name: os.environ[name] for name in NEEDED}}
        self.create("residual", {"image": "examples/residual:1", "command": [sys.executable, str(PROGRAM)],
                                 "args": [str(EPOCHS)],
                                 "env": [{"name": name, "value": value} for name, value in variables.items()]},
                    minReplicas=REPLICAS, maxReplicas=REPLICAS)
        wait_for(lambda: self.status("residual").get("readyReplicas") == REPLICAS, "both replicas")
        status = self.status("residual")
        self.assertEqual(status["phase"], "Running")
        self.assertEqual(len(set(status["allocation"])), REPLICAS, "one slot a pod")
        trial = lambda: self.export("--service", self.grpc, study=status["study"])["trials"][0]
        trained = wait_for(lambda: trial()["step"] and trial(), "the first steps")
        self.assertEqual(trained["resizes"], [], "it has not begun with fewer")
        name = status["allocation"][0]
        pod, = (pod["metadata"]["name"] for pod in self.cluster.pods("Running")
                if pod["metadata"]["labels"]["espalier.dev/node"] == name)
        self.cluster.delete_pod(pod)  # as kubectl drain does
        self.wait_status("residual", "Succeeded")
        ended = trial()
        self.assertEqual((ended["state"], ended["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([int(value["step"]) for value in ended["values"]], list(range(1, EPOCHS + 1)), "each epoch once")
        drained, = (decision["at"] for decision in self.export("--service", self.grpc, study=status["study"])["decisions"]
                    if f"node {name} drains" in decision["reason"])
        full = [span["from"] for span in ended["spans"] if len(span["slots"]) == REPLICAS]
        self.assertGreater(full[-1], drained, "another pod has come into its place")
        self.stop(self.service)


if __name__ == "__main__":
    unittest.main()
