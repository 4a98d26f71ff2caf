"""What tests of the engine rely on, held against the API server that they run on: the small one always, and the real one
where it has been made, so that the two do the same."""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hosts import run_inside

run_inside(__file__)

from api_client import PATCH, path_of
from cluster import NAMESPACE, Cluster, manifests, real_programs
from harness import wait_for

LEASES = "leases.coordination.k8s.io/v1"
JOBS = "adaptdljobs.adaptdl.petuum.com/v1"
ROLES, BINDINGS = "roles.rbac.authorization.k8s.io/v1", "rolebindings.rbac.authorization.k8s.io/v1"


def pod(name, gpus=1, **meta):
    return {"metadata": {"name": name, **meta}, "spec": {
        "automountServiceAccountToken": False, "restartPolicy": "Never", "containers": [
            {"name": "agent", "image": "espalier:test", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}


def job(name, **spec):
    return {"apiVersion": "adaptdl.petuum.com/v1", "kind": "AdaptDLJob", "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "command": ["true"]}]}}, **spec}}


class Contract:
    """Of any API server; each class below names one."""

    @classmethod
    def setUpClass(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.cluster = Cluster(nodes=2, small=cls.small, kubelets=False)
        cls.addClassCleanup(cls.cluster.down)
        cls.admin = cls.cluster.admin
        cls.cluster.create("serviceaccounts", {"metadata": {"name": "tuner"}})
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "list", "delete"]},
                 {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["join"], "verbs": ["patch"]},
                 {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                 {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["one"],
                  "verbs": ["get", "update"]},
                 {"apiGroups": ["adaptdl.petuum.com"], "resources": ["adaptdljobs"], "verbs": ["list"]},
                 {"apiGroups": ["adaptdl.petuum.com"], "resources": ["adaptdljobs/status"], "verbs": ["patch"]}]
        cls.cluster.create(ROLES, {"metadata": {"name": "tuner"}, "rules": rules})
        cls.cluster.create(BINDINGS, {
            "metadata": {"name": "tuner"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tuner"},
            "subjects": [{"kind": "ServiceAccount", "name": "tuner", "namespace": NAMESPACE}]})
        cls.tuner = cls.cluster.client(cls.cluster.new_token("tuner"))
        wait_for(lambda: cls.tuner.call("GET", path_of("pods"))[0] == 200, "the rights to be known")
        for obj in manifests():
            if obj["kind"] == "CustomResourceDefinition":
                cls.cluster.apply(obj)
        wait_for(lambda: cls.tuner.call("GET", path_of(JOBS))[0] == 200, "the kind of the definition to be served")

    def tearDown(self):
        for one in self.admin.get(path_of("pods"))["items"]:
            self.delete(one["metadata"]["name"], gracePeriodSeconds=0)
        wait_for(lambda: not self.admin.get(path_of("pods"))["items"], "no pods")

    def refused(self, code, reason, method, path, body=None, user=None):
        got, answer = (user or self.admin).call(method, path, body)
        self.assertEqual((got, answer.get("reason")), (code, reason), answer)
        return answer["message"]

    def delete(self, name, **options):
        return self.admin.call("DELETE", path_of("pods", name), options)

    def create(self, body, user=None):
        return (user or self.admin).create(path_of("pods"), body)

    def bound(self, name, gpus=0):
        """A pod with a node."""
        self.create(pod(name, gpus))
        return wait_for(lambda: (found := self.admin.get(path_of("pods", name)))["spec"].get("nodeName") and found, "a node")

    def test_rights(self):
        stranger = self.cluster.client("nobody's")
        self.refused(401, "Unauthorized", "GET", path_of("pods"), user=stranger)
        told = self.refused(403, "Forbidden", "GET", path_of("pods", "any"), user=self.tuner)
        self.assertIn('pods "any" is forbidden: User "system:serviceaccount:espalier:tuner" cannot get resource "pods" in API '
                      'group "" in the namespace "espalier"', told)
        self.refused(403, "Forbidden", "GET", path_of("pods", namespace="elsewhere"), user=self.tuner)
        self.refused(403, "Forbidden", "GET", path_of("nodes"), user=self.tuner)
        self.cluster.create("secrets", {"metadata": {"name": "join"}})
        self.cluster.create("secrets", {"metadata": {"name": "other"}})
        self.tuner.patch(path_of("secrets", "join"), {"data": {"token": "YQ=="}})
        changed = self.tuner.patch(path_of("secrets", "join"), {"data": {"ca.pem": "Yg=="}})
        self.assertEqual(changed["data"], {"token": "YQ==", "ca.pem": "Yg=="})
        code, _ = self.tuner.call("PATCH", path_of("secrets", "other"), {}, "application/merge-patch+json")
        self.assertEqual(code, 403)
        _, missing = self.admin.call("PATCH", path_of("secrets", "nothing"), {}, PATCH)
        self.assertEqual((missing["code"], missing["message"]), (404, 'secrets "nothing" not found'))
        listed = [entry for entry in self.cluster.audited("system:serviceaccount:espalier:tuner")]
        self.assertIn(("patch", "", "secrets", "join", 200), listed)
        self.assertIn(("patch", "", "secrets", "other", 403), listed)

    def test_pods_are_known_by_their_names(self):
        made = self.create(pod("espalier.00000000.000000.node-1.00000000", labels={"pool": "a"}), self.tuner)
        self.assertEqual(made["status"]["phase"], "Pending")
        told = self.refused(409, "AlreadyExists", "POST", path_of("pods"), pod(made["metadata"]["name"]), self.tuner)
        self.assertEqual(told, f'pods "{made["metadata"]["name"]}" already exists')
        self.refused(422, "Invalid", "POST", path_of("pods"), pod("No_Name"))
        without = pod("without")
        del without["spec"]["containers"][0]["image"]
        self.assertIn("spec.containers[0].image: Required value",
                      self.refused(422, "Invalid", "POST", path_of("pods"), without))
        self.refused(404, "NotFound", "GET", path_of("pods", "nothing"))
        nobodys = pod("nobodys")
        nobodys["spec"]["serviceAccountName"] = "nobody"
        self.assertIn('serviceaccount "nobody" not found',
                      self.refused(403, "Forbidden", "POST", path_of("pods"), nobodys))

    def test_lists_are_selected_and_come_in_pages(self):
        for number in range(5):
            self.create(pod(f"p{number}", labels={"pool": "a" if number < 3 else "b", f"l{number}": "1"}))
        def names(**query):
            return [p["metadata"]["name"] for p in self.tuner.get(path_of("pods", **query))["items"]]
        self.assertEqual(names(labelSelector="pool=a"), ["p0", "p1", "p2"])
        self.assertEqual(names(labelSelector="pool in (b,c),!l4"), ["p3"])
        self.assertEqual(names(labelSelector="pool!=a"), ["p3", "p4"])
        self.assertEqual(names(fieldSelector="metadata.name=p2"), ["p2"])
        page = self.tuner.get(path_of("pods", limit=2))
        found = page["items"]
        while token := page["metadata"].get("continue"):
            page = self.tuner.get(path_of("pods", limit=2, **{"continue": token}))
            found += page["items"]
        self.assertEqual([p["metadata"]["name"] for p in found], [f"p{number}" for number in range(5)])

    def test_deletion_gives_notice_to_pods_on_nodes(self):
        self.create(pod("waits", gpus=100))
        self.assertEqual(self.delete("waits")[0], 200)
        self.refused(404, "NotFound", "GET", path_of("pods", "waits"))
        there = self.bound("there")
        uid = there["metadata"]["uid"]
        self.refused(409, "Conflict", "DELETE", path_of("pods", "there"), {"preconditions": {"uid": "another"}})
        self.assertEqual(self.delete("there", preconditions={"uid": uid})[1]["metadata"]["deletionGracePeriodSeconds"], 30)
        told = self.admin.get(path_of("pods", "there"))["metadata"]
        self.assertIn("deletionTimestamp", told)
        self.assertEqual(self.delete("there", gracePeriodSeconds=5)[1]["metadata"]["deletionGracePeriodSeconds"], 5)
        self.assertEqual(self.delete("there", gracePeriodSeconds=0)[0], 200)
        self.refused(404, "NotFound", "DELETE", path_of("pods", "there"))
        self.bound("ended")
        self.admin.patch(path_of("pods", "ended", "status"), {"status": {"phase": "Failed", "reason": "Evicted"}})
        self.assertEqual(self.delete("ended")[0], 200)
        self.refused(404, "NotFound", "GET", path_of("pods", "ended"))

    def test_pods_get_nodes_by_their_gpus(self):
        nodes = {self.bound(f"p{number}", gpus=2)["spec"]["nodeName"] for number in range(2)}
        self.assertEqual(nodes, {"n1", "n2"})
        self.create(pod("more", gpus=2))
        def condition():
            conditions = self.admin.get(path_of("pods", "more"))["status"].get("conditions") or []
            return [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        told = wait_for(condition, "the reason")[0]
        self.assertEqual(told["reason"], "Unschedulable")
        self.assertIn("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", told["message"])
        self.assertEqual(self.admin.get(path_of("pods", "more"))["status"]["phase"], "Pending")
        self.delete("p0", gracePeriodSeconds=0)
        wait_for(lambda: self.admin.get(path_of("pods", "more"))["spec"].get("nodeName"), "the node that is free")
        again = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "more"},
                 "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}
        self.refused(409, "Conflict", "POST", path_of("pods", "more", "binding"), again)

    def test_watches_tell_changes_in_order(self):
        version = self.admin.get(path_of("pods"))["metadata"]["resourceVersion"]
        self.create(pod("other", gpus=100, labels={"pool": "b"}))
        self.create(pod("mine", gpus=100, labels={"pool": "a"}))
        self.admin.patch(path_of("pods", "mine", "status"), {"status": {"phase": "Failed"}})
        self.delete("mine", gracePeriodSeconds=0)
        seen = []
        for kind, obj in self.admin.watch(path_of("pods", watch="true", resourceVersion=version, labelSelector="pool=a",
                                                  allowWatchBookmarks="true", timeoutSeconds=2)):
            if kind == "BOOKMARK":  # whenever a server likes
                self.assertEqual(list(obj["metadata"].get("labels") or ()), [])
                self.assertGreaterEqual(int(obj["metadata"]["resourceVersion"]), int(version))
            elif (kind, obj["status"]["phase"]) not in seen:  # the scheduler changes it too
                seen.append((kind, obj["status"]["phase"]))
        kinds = [kind for kind, _ in seen]
        self.assertEqual((kinds[0], kinds[-1]), ("ADDED", "DELETED"))
        self.assertIn(("MODIFIED", "Failed"), seen)

    def test_leases_are_compared_and_swapped(self):
        lease = {"metadata": {"name": "one"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
        first = self.tuner.create(path_of(LEASES), lease)
        self.refused(409, "AlreadyExists", "POST", path_of(LEASES), lease, self.tuner)
        first["spec"]["holderIdentity"] = "b"
        second = self.tuner.do("PUT", path_of(LEASES, "one"), first)
        self.assertEqual(second["spec"]["holderIdentity"], "b")
        told = self.refused(409, "Conflict", "PUT", path_of(LEASES, "one"), first, self.tuner)
        self.assertIn("the object has been modified; please apply your changes to the latest version and try again", told)

    def test_custom_resources_have_a_schema(self):
        made = self.admin.create(path_of(JOBS), dict(job("one", minReplicas=1, other="kept"), strange=1, status={"phase": "Running"}))
        self.addCleanup(self.admin.call, "DELETE", path_of(JOBS, "one"))
        self.assertEqual((made["kind"], made["apiVersion"]), ("AdaptDLJob", "adaptdl.petuum.com/v1"))
        self.assertEqual((made["metadata"]["generation"], made["spec"]["other"]), (1, "kept"))
        self.assertFalse({"strange", "status"} & set(made), "what the schema does not know, and what others are to write")
        for wrong, said in (({"minReplicas": "two"}, "spec.minReplicas in body must be of type integer"),
                            ({"maxReplicas": 0}, "spec.maxReplicas in body should be greater than or equal to 1"),
                            ({"template": None}, "spec.template")):
            told = self.refused(422, "Invalid", "POST", path_of(JOBS), job("wrong", **wrong))
            self.assertIn('AdaptDLJob.adaptdl.petuum.com "wrong" is invalid: ', told)
            self.assertIn(said, told)
        unknown = self.admin.call("GET", path_of("nothings.adaptdl.petuum.com/v1"))
        self.assertEqual(unknown, (404, "404 page not found\n"))
        self.refused(409, "AlreadyExists", "POST", path_of(JOBS), job("one"))
        told = self.refused(400, "BadRequest", "POST", path_of(JOBS), {"metadata": {"name": "nothing"}})
        self.assertIn("Object 'Kind' is missing in", told)
        self.assertEqual(self.admin.call("DELETE", path_of(JOBS, "one"))[0], 200)
        self.refused(404, "NotFound", "GET", path_of(JOBS, "one"))
        again = self.admin.create(path_of(JOBS), job("one"))
        self.assertNotEqual(again["metadata"]["uid"], made["metadata"]["uid"])

    def test_a_kind_goes_with_its_definition(self):
        versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
        self.cluster.apply({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.espalier.test"},
            "spec": {"group": "espalier.test", "scope": "Namespaced", "versions": versions,
                     "names": {"kind": "Thing", "plural": "things", "singular": "thing"}}})
        things = path_of("things.espalier.test/v1")
        wait_for(lambda: self.admin.call("GET", things)[0] == 200, "the kind to be served")
        self.admin.do("DELETE", path_of("customresourcedefinitions.apiextensions.k8s.io/v1", "things.espalier.test", namespace=""))
        wait_for(lambda: self.admin.call("GET", things) == (404, "404 page not found\n"), "the kind to be gone")

    def test_the_status_of_a_custom_resource_is_written_apart(self):
        made = self.admin.create(path_of(JOBS), job("two", minReplicas=1))
        self.addCleanup(self.admin.call, "DELETE", path_of(JOBS, "two"))
        def patch(body, *place, user=self.tuner):
            return user.call("PATCH", path_of(JOBS, "two", *place), body, PATCH)
        version = made["metadata"]["resourceVersion"]
        code, first = patch({"metadata": {"resourceVersion": version, "labels": {"a": "b"}}, "spec": {"minReplicas": 7},
                             "status": {"phase": "Pending", "message": "waits", "of": "another"}}, "status")
        self.assertEqual(code, 200, first)
        self.assertEqual(first["status"], {"phase": "Pending", "message": "waits", "of": "another"})
        self.assertEqual((first["spec"], first["metadata"]["generation"]), (made["spec"], 1), "the status alone")
        self.assertNotIn("labels", first["metadata"])
        code, told = patch({"metadata": {"resourceVersion": version}, "status": {"phase": "Failed"}}, "status")
        self.assertEqual((code, told["reason"]), (409, "Conflict"))
        self.assertIn("the object has been modified; please apply your changes to the latest version", told["message"])
        code, told = patch({"status": {"phase": "Strange"}}, "status")
        self.assertEqual((code, told["reason"]), (422, "Invalid"))
        self.assertIn('status.phase: Unsupported value: "Strange"', told["message"])
        code, second = patch({"status": {"phase": "Running", "message": None}}, "status")
        self.assertEqual((code, second["status"]), (200, {"phase": "Running", "of": "another"}))
        for verb, (code, told) in (("patch", patch({"spec": {"minReplicas": 2}})),
                                   ("get", self.tuner.call("GET", path_of(JOBS, "two")))):
            self.assertEqual(code, 403, told)
            self.assertIn(f'cannot {verb} resource "adaptdljobs" in API group "adaptdl.petuum.com"', told["message"])
        code, edited = patch({"spec": {"minReplicas": 2}, "status": {"phase": "Failed"}}, user=self.admin)
        self.assertEqual((code, edited["metadata"]["generation"], edited["status"]["phase"]), (200, 2, "Running"))
        code, labelled = patch({"metadata": {"labels": {"a": "b"}}}, user=self.admin)
        self.assertEqual((code, labelled["metadata"]["generation"], labelled["metadata"]["labels"]), (200, 2, {"a": "b"}))
        self.admin.create(path_of(JOBS), job("three"))
        self.addCleanup(self.admin.call, "DELETE", path_of(JOBS, "three"))
        page = self.tuner.get(path_of(JOBS, limit=1))
        rest = self.tuner.get(path_of(JOBS, limit=1, **{"continue": page["metadata"]["continue"]}))
        self.assertEqual([obj["metadata"]["name"] for obj in page["items"] + rest["items"]], ["three", "two"])
        self.assertIn(("patch", "adaptdl.petuum.com", "adaptdljobs/status", "two", 409),
                      list(self.cluster.audited("system:serviceaccount:espalier:tuner")))

    def test_quotas_refuse_what_is_too_much(self):
        hard = {"pods": "1"}
        self.cluster.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": hard}})
        # Its controller would tell what is used.
        self.admin.patch(path_of("resourcequotas", "few", "status"), {"status": {"hard": hard, "used": {"pods": "0"}}})
        try:
            first = [0]
            def made():  # a quota is known by and by
                first[0] += 1
                return self.admin.call("POST", path_of("pods"), pod(f"p{first[0]}"))[0] == 403
            wait_for(made, "the quota to be used up")
            told = self.refused(403, "Forbidden", "POST", path_of("pods"), pod("much"))
            self.assertIn('pods "much" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1',
                          told)
        finally:
            self.admin.do("DELETE", path_of("resourcequotas", "few"))
            wait_for(lambda: self.admin.call("POST", path_of("pods"), pod("again"))[0] in (201, 409), "no quota")

    def test_tokens_end_with_what_they_are_bound_to(self):
        token = self.cluster.new_token("tuner", bound="session")
        user = self.cluster.client(token)
        self.assertEqual(user.call("GET", path_of("pods"))[0], 200)
        self.admin.do("DELETE", path_of("secrets", "session"))
        wait_for(lambda: user.call("GET", path_of("pods"))[0] == 401, "the token to be refused")
        again = self.cluster.client(self.cluster.new_token("tuner", bound="session"))
        self.assertEqual(again.call("GET", path_of("pods"))[0], 200)
        self.assertEqual(user.call("GET", path_of("pods"))[0], 401, "another secret of that name")

    def test_what_is_acknowledged_outlives_the_server_and_old_watches_do_not(self):
        made = self.create(pod("kept", gpus=100))
        self.cluster.kill_api_server()
        with self.assertRaises(OSError):
            self.admin.get(path_of("pods"))
        self.cluster.start_api_server()
        self.assertEqual(self.admin.get(path_of("pods", "kept"))["metadata"]["uid"], made["metadata"]["uid"])
        events = list(self.admin.watch(path_of("pods", watch="true", resourceVersion=1, timeoutSeconds=2)))
        self.assertEqual([kind for kind, _ in events], ["ERROR"])
        self.assertEqual((events[0][1]["code"], events[0][1]["reason"]), (410, "Expired"))
        wait_for(lambda: self.tuner.call("GET", path_of("pods"))[0] == 200, "the rights to be known again")


class SmallApiServer(Contract, unittest.TestCase):
    small = True


if real_programs():
    class RealApiServer(Contract, unittest.TestCase):
        small = False


if __name__ == "__main__":
    if not real_programs():
        print("The small API server alone: there is no real one here (scripts/setup-kubernetes.sh makes it)")
    unittest.main()
