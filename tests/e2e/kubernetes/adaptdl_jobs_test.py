"""`tuner serve --engine kubernetes --adaptdl-jobs`: AdaptDLJobs as people make them with kubectl, and what becomes of them.
On the real API server and scheduler where they have been made, else on the small ones, as kubernetes_test.py."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hosts import run_inside

run_inside(__file__)

from api_client import PATCH, path_of
from cluster import NAMESPACE
from harness import LEASE_S, processes, wait_for
from kubernetes_test import NODES, Kubernetes

JOBS = "adaptdljobs.adaptdl.petuum.com/v1"


class AdaptDLJobs(Kubernetes):
    def setUp(self):
        super().setUp()
        self.service = self.serve_kubernetes("--adaptdl-jobs", node_lease=LEASE_S)

    def tearDown(self):
        for job in self.cluster.admin.get(path_of(JOBS))["items"]:
            self.cluster.admin.call("DELETE", path_of(JOBS, job["metadata"]["name"]))
        super().tearDown()

    def create(self, name, container, **spec):
        return self.cluster.create(JOBS, {"apiVersion": "adaptdl.petuum.com/v1", "kind": "AdaptDLJob", "metadata": {"name": name},
                                          "spec": {"template": {"spec": {"containers": [{"name": "main", **container}]}}, **spec}})

    def status(self, name):
        return self.cluster.admin.get(path_of(JOBS, name)).get("status") or {}

    def wait_status(self, name, phase, message=""):
        def there():
            status = self.status(name)
            return status if status.get("phase") == phase and message in status.get("message", "") else None
        return wait_for(there, f"{name} to be {phase} {message}")


class AdaptDLJobsTest(AdaptDLJobs):
    def create_job(self, name, script, **spec):
        """A job that runs a line of sh, as its only replica."""
        env = [{"name": "DIR", "value": str(self.dir)}, {"name": "MARKS", "value": f"$(DIR)/{name}"}]
        return self.create(name, {"image": "of-another-registry:1", "command": ["/bin/sh", "-c"], "args": [script], "env": env}, **spec)

    def phases_since(self, made):
        """The phases that its object has had, each once in a row."""
        phases = []
        version = made["metadata"]["resourceVersion"]
        for _, job in self.cluster.admin.watch(path_of(JOBS, watch="true", resourceVersion=version, timeoutSeconds=2,
                                                       fieldSelector=f"metadata.name={made['metadata']['name']}")):
            phase = job.get("status", {}).get("phase")
            if phase not in phases[-1:]:
                phases.append(phase)
        return phases

    def lines(self, name):
        path = self.dir / name
        return path.read_text().split() if path.exists() else []

    def test_a_job_runs_once_through_a_restart_of_the_service(self):
        made = self.create_job("cifar", 'echo started >> "$MARKS"; until [ -e "$DIR/go" ]; do sleep 0.05; done')
        status = self.wait_status("cifar", "Running")
        self.assertEqual((status["replicas"], status["readyReplicas"], status["attemptCount"], status["group"]), (1, 1, 1, 0))
        self.assertEqual(status["allocation"], self.nodes())
        self.assertEqual(status["study"], "cifar-" + made["metadata"]["uid"][:8])
        wait_for(lambda: self.lines("cifar"), "the program to start")
        self.service.kill()
        self.service.wait()
        self.free_lease()
        self.service = self.serve_kubernetes("--adaptdl-jobs", node_lease=LEASE_S)
        self.cluster.admin.do("PATCH", path_of(JOBS, "cifar"), {"spec": {"minReplicas": 2}}, PATCH)
        self.wait_status("cifar", "Running", "it was edited after it had been taken up")
        if self.cluster.kind == "real":
            table = self.cluster.kubectl("-n", NAMESPACE, "get", "adaptdljobs").split()
            self.assertEqual(table[:7], ["NAME", "READY", "REPLICAS", "RESTARTS", "STATUS", "REASON", "AGE"])
            self.assertEqual(table[7:13], ["cifar", "1", "1", "0", "Running", "Edited"])
        (self.dir / "go").touch()
        status = self.wait_status("cifar", "Succeeded")
        self.assertTrue(status["completionTimestamp"])
        self.assertNotIn("allocation", status)
        self.assertEqual(len(self.lines("cifar")), 1, "the program was started once")
        phases = [phase for phase in self.phases_since(made) if phase != "Starting"]
        self.assertEqual(phases, ["Pending", "Running", "Succeeded"])
        self.assertEqual(self.told(self.service, "adaptdl_job_taken"), [], "by the first service")
        self.assertEqual(self.forbidden_used(), [])
        self.stop(self.service)

    def test_a_deleted_object_stops_its_job(self):
        made = self.create_job("endless", 'echo first >> "$MARKS"; while :; do sleep 0.05; done')
        study = self.wait_status("endless", "Running")["study"]
        wait_for(lambda: self.lines("endless"), "the program to start")
        running = lambda: [pid for pid, _, words in processes() if any("while :; do" in word for word in words)]
        self.assertTrue(running())
        self.cluster.admin.do("DELETE", path_of(JOBS, "endless"))
        again = self.create_job("endless", 'echo again >> "$MARKS"')  # another object of the name
        self.assertNotEqual(again["metadata"]["uid"], made["metadata"]["uid"])
        self.wait_status("endless", "Succeeded")
        wait_for(lambda: not running(), "the program to end")
        record = self.export("--service", self.grpc, study=study)
        self.assertEqual(record["study"]["state"], "STUDY_STOPPED")
        self.assertEqual(self.lines("endless"), ["first", "again"])
        self.stop(self.service)

    def test_a_broken_job_fails_and_one_that_is_too_large_waits(self):
        self.create_job("broken", "true", minReplicas=3, maxReplicas=2)
        status = self.wait_status("broken", "Failed")
        self.assertEqual((status["reason"], status["message"]),
                         ("Invalid", 'broken: spec.maxReplicas: needs at least minReplicas, 3, got "2"'))
        self.create_job("misspelt", "true", minReplica=3)
        self.assertIn("spec.minReplica is unknown", self.wait_status("misspelt", "Failed")["message"])
        self.create_job("fails", "echo no such data; exit 3")
        status = self.wait_status("fails", "Failed")
        self.assertEqual(status["reason"], "ProgramFailed")
        self.assertIn("3", status["message"])
        self.create_job("large", "true", minReplicas=NODES + 1)
        status = self.wait_status("large", "Pending", f"waits for {NODES + 1} slots, the pool has ")
        self.assertEqual(status["reason"], "Waiting")
        self.cluster.admin.do("PATCH", path_of(JOBS, "broken"), {"spec": {"maxReplicas": 3, "minReplicas": 1}}, PATCH)
        self.wait_status("broken", "Succeeded")
        self.stop(self.service)


if __name__ == "__main__":
    unittest.main()
