"""An AdaptDLJob of several replicas, each in a pod of its own: a program for AdaptDL trains, loses a pod and ends. On the
API server and scheduler that tests/e2e/kubernetes has."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
E2E = HERE.parents[1] / "e2e"
PROGRAM = HERE / "endless_cifar.py"
sys.path[:0] = [str(E2E), str(E2E / "kubernetes")]
from hosts import run_inside  # noqa: E402

run_inside(__file__)

from adaptdl_jobs_test import AdaptDLJobs  # noqa: E402
from harness import LONG_S, wait_for  # noqa: E402

REPLICAS = 2
NEEDED = ("PYTHONPATH", "ESPALIER_TORCH_LIBRARY")  # where the image has not installed espalier


class SeveralReplicas(AdaptDLJobs):
    def test_it_trains_in_two_pods_and_goes_on_when_one_is_taken(self):
        end = self.dir / "end"
        variables = {"OMP_NUM_THREADS": "1", **{name: os.environ[name] for name in NEEDED}}
        self.create("residual", {"image": "examples/residual:1", "command": [sys.executable, str(PROGRAM)],
                                 "args": [str(end)],
                                 "env": [{"name": name, "value": value} for name, value in variables.items()]},
                    minReplicas=REPLICAS, maxReplicas=REPLICAS)
        both = lambda: (status := self.status("residual")).get("readyReplicas") == REPLICAS and status
        status = wait_for(both, "both replicas", LONG_S)
        self.assertEqual(status["phase"], "Running")
        self.assertEqual(len(set(status["allocation"])), REPLICAS, "one slot a pod")
        trial = lambda: self.export("--service", self.grpc, study=status["study"])["trials"][0]
        trained = wait_for(lambda: trial()["step"] and trial(), "the first steps")
        self.assertEqual(trained["resizes"], [], "it has not begun with fewer")
        name = status["allocation"][0]
        pod, = (pod["metadata"]["name"] for pod in self.cluster.pods("Running")
                if pod["metadata"]["labels"]["espalier.dev/node"] == name)
        self.cluster.delete_pod(pod)  # as kubectl drain does

        def drained():
            decisions = self.export("--service", self.grpc, study=status["study"])["decisions"]
            return [decision["at"] for decision in decisions if f"node {name} drains" in decision["reason"]]

        full = lambda: [span["from"] for span in trial()["spans"] if len(span["slots"]) == REPLICAS]
        wait_for(lambda: (at := drained()) and full()[-1] > at[-1], "another pod to come into its place", LONG_S)
        self.assertEqual(len(drained()), 1)
        end.touch()
        self.wait_status("residual", "Succeeded")
        ended = trial()
        self.assertEqual((ended["state"], ended["restarts"]), ("TRIAL_COMPLETE", 0))
        self.assertEqual([int(value["step"]) for value in ended["values"]], list(range(1, len(ended["values"]) + 1)),
                         "each epoch once")
        self.stop(self.service)


if __name__ == "__main__":
    unittest.main()
