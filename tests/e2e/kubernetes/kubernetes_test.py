"""`tuner serve --engine kubernetes`: nodes are pods that come with a study and go with it, whatever happens to the API
server, the pods, their machines and the service. On the real API server and scheduler where they have been made
(scripts/setup-kubernetes.sh), else on the small ones of the tests: the first line says which."""
import pathlib
import re
import ssl
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from hosts import run_inside

run_inside(__file__)

from api_client import path_of
from cluster import BARE_IMAGE, IMAGE, NAMESPACE, Cluster, manifests
from faults import FaultyPath
from harness import LEASE_S, LONG_S, ROOT, TUNER, EngineTest, processes, wait_for

NODES = 4
LOST_S = 3  # after which a node is given up, where one is lost
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:espalier"


class Kubernetes(EngineTest):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.cluster = Cluster(NODES)
        cls.addClassCleanup(cls.cluster.down)
        print(f"engine kubernetes: on the {cls.cluster.kind} API server and scheduler", flush=True)
        cls.manifests = manifests()
        for obj in cls.manifests:
            cls.cluster.apply(obj)
        first = cls.cluster.client(cls.cluster.new_token())
        wait_for(lambda: first.call("GET", path_of("pods"))[0] == 200, "the rights to be known")

    def setUp(self):
        super().setUp()
        self.grpc, self.http = self.held_address(), self.held_address()
        self.token = self.write("api.token", self.cluster.new_token())

    def tearDown(self):
        for process in self.processes:  # the service first: it would start others
            if process.poll() is None:
                process.kill()
        if not self.cluster.api_server_lives():
            self.cluster.start_api_server()
        def none_left():
            for pod in self.cluster.admin.get(path_of("pods"))["items"]:
                self.cluster.delete_pod(pod["metadata"]["name"], gracePeriodSeconds=0)
            return not self.cluster.admin.get(path_of("pods"))["items"] and not self.agents()
        wait_for(none_left, "no pods")
        self.free_lease()
        super().tearDown()

    def free_lease(self):
        """As its time does for one that was killed."""
        self.cluster.admin.call("DELETE", path_of("leases.coordination.k8s.io/v1", "espalier"))

    def agents(self):
        return [pid for pid, _, words in processes() if words[1:2] == ["agent"] and words[0].endswith("/tuner")]

    def engine_options(self, **options):
        cluster = self.cluster
        options = {"server": cluster.url, "ca": cluster.ca, "token": self.token, "namespace": NAMESPACE, "image": IMAGE,
                   "gpus": cluster.gpus, "notice_s": 4, "lease_s": LEASE_S, **options}  # all GPUs: one pod on each node
        return [word for name, value in options.items() for word in ("--engine-option", f"{name}={value}")]

    def start_service(self, *more, nodes=("--max-nodes", NODES, "--node-start", "2"), node_lease=LOST_S, **options):
        return self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "pool.db", "--lease",
                          node_lease, "--engine", "kubernetes", *nodes, "--node-dir", self.dir / "nodes",
                          *self.engine_options(**options), *more)

    def serve_kubernetes(self, *more, **keys):
        service = self.start_service(*more, **keys)
        self.wait_service(service)
        return service

    def warnings(self):
        return " ".join(self.pool().get("warnings", []))

    def names(self, *phases):
        return [pod["metadata"]["name"] for pod in self.cluster.pods(*phases)]

    def exactly(self, nodes):
        """Whether so many nodes are in the pool, and so many pods in the cluster: neither lost nor doubled."""
        of = {pod["metadata"]["labels"]["espalier.dev/node"] for pod in self.cluster.pods()}
        return len(self.nodes()) == nodes == len(self.names()) == len(self.names("Running")) == len(of)

    def complete(self):
        return self.export("--service", self.grpc)["study"]["state"] == "STUDY_COMPLETE"

    def check_steps(self, steps, trials, none_twice=True):
        record = self.export("--service", self.grpc)
        self.assertEqual([t["state"] for t in record["trials"]], ["TRIAL_COMPLETE"] * trials)
        for trial in record["trials"]:
            self.assertEqual([int(v["step"]) for v in trial["values"]], list(range(1, steps + 1)))
            if none_twice:
                self.assertEqual(self.taken(trial["number"]), list(range(1, steps + 1)), "no step twice")

    def stop(self, service):
        service.terminate()  # trials leave with a checkpoint, and no pod is left
        self.finish(service)
        self.assertEqual(self.names(), [])

    def told(self, service, event):
        return [line for line in self.output(service).splitlines() if f"event={event} " in line]

    def forbidden_used(self):
        """Requests of the service that the manifests do not grant, by the audit log of the API server; and that there are
        any at all."""
        role, = (obj for obj in self.manifests if obj["kind"] == "Role")
        granted = {(verb, group, resource, name) for rule in role["rules"] for verb in rule["verbs"]
                   for group in rule["apiGroups"] for resource in rule["resources"]
                   for name in rule.get("resourceNames", ["*"])}
        used = [entry[:4] for entry in self.cluster.audited(ACCOUNT)]
        self.assertTrue(used)
        return [entry for entry in used if not {(*entry[:3], "*"), entry} & granted]


class KubernetesTest(Kubernetes):
    def test_nodes_come_with_a_study_are_taken_away_and_go_with_it(self):
        service = self.serve_kubernetes(node_lease=LEASE_S)
        self.submit(steps=12, trials=6, also=self.until_go())
        wait_for(lambda: self.exactly(NODES), "a pod and a node on each of the cluster's nodes")
        self.assertEqual(sorted(pod["spec"]["nodeName"] for pod in self.cluster.pods()), ["n1", "n2", "n3", "n4"])
        first = self.names()[0]
        self.cluster.delete_pod(first)  # as kubectl drain, an eviction or a spot node's end does
        wait_for(lambda: first not in self.names(), "the pod to leave")
        self.go()
        wait_for(self.complete, "the study to end")
        self.check_steps(steps=12, trials=6)
        wait_for(lambda: not self.names() and not self.nodes(), "the pool to shrink to nothing")
        self.assertEqual(self.told(service, "engine_trouble"), [])
        self.assertEqual(self.forbidden_used(), [])
        self.stop(service)

    def test_nodes_of_several_templates_are_pods_of_their_own_and_one_lease_is_for_all(self):
        node = {"slots": 1, "start_s": 2, "max_nodes": 2}
        templates = self.write("templates.json", [
            {**node, "name": "cheap", "price_per_hour": 1, "spot": True, "options": {"agent_argument": ["--spot"]}},
            {**node, "name": "dear", "price_per_hour": 3, "options": {"image": BARE_IMAGE, "agent_image": IMAGE}}])
        service = self.serve_kubernetes(nodes=("--node-templates", templates), node_lease=LEASE_S)
        self.submit(steps=12, trials=4, also=self.until_go())
        kinds = lambda: sorted((pod["metadata"]["labels"]["espalier.dev/node"], pod["spec"]["containers"][0]["image"])
                               for pod in self.cluster.pods("Running"))
        wait_for(lambda: kinds() == [("pool-cheap-1", IMAGE), ("pool-cheap-2", IMAGE),
                                     ("pool-dear-1", BARE_IMAGE), ("pool-dear-2", BARE_IMAGE)], "pods of both kinds")
        wait_for(lambda: len(self.nodes()) == 4, "their nodes")
        self.assertEqual({node["name"]: (node["spot"], node["price_per_hour"]) for node in self.pool()["nodes"]},
                         {"pool-cheap-1": (True, 1), "pool-cheap-2": (True, 1),
                          "pool-dear-1": (False, 3), "pool-dear-2": (False, 3)})
        self.assertEqual(len(self.told(service, "lease_taken")), 1)
        self.go()
        wait_for(self.complete, "the study to end")
        self.check_steps(steps=12, trials=4)
        self.assertEqual(self.told(service, "engine_trouble"), [])
        self.assertEqual(self.forbidden_used(), [])
        self.stop(service)
        following = self.serve_kubernetes(nodes=("--node-templates", templates))  # the Lease was given back
        self.stop(following)

    def test_a_lost_machine_is_replaced(self):
        service = self.serve_kubernetes()
        self.submit(steps=12, trials=NODES, also=self.until_go())
        wait_for(lambda: self.exactly(NODES), "all nodes")
        lost = self.cluster.pods()[0]
        machine = lost["spec"]["nodeName"]
        self.cluster.lose_node(machine)  # its pod stays as it was, for all that the API server knows
        wait_for(lambda: len(self.nodes()) == NODES - 1, "the pool to notice")
        wait_for(lambda: lost["metadata"]["name"] not in self.names(), "the pod to be given up")
        self.cluster.start_kubelet(machine)
        self.go()
        wait_for(self.complete, "the study to end")
        self.check_steps(steps=12, trials=NODES, none_twice=False)
        self.stop(service)

    def test_the_api_server_may_be_away_and_requests_be_lost(self):
        service = self.serve_kubernetes()
        self.submit(steps=10_000, trials=NODES)
        taken = lambda: sum(len(self.taken(trial)) for trial in range(NODES))
        wait_for(lambda: len(self.told(service, "machine_requested")) >= 2 and taken(), "requests, and a trial to train")
        self.cluster.kill_api_server()
        wait_for(lambda: "nothing is started or ended" in self.warnings(), "the warning")
        steps = taken()
        wait_for(lambda: taken() > steps + 2, "trials to go on")
        self.cluster.start_api_server()
        wait_for(lambda: self.exactly(NODES), "exactly what is wanted, after the loss of the API server")
        wait_for(lambda: not self.warnings(), "the warning to go")
        # A pod goes, and the service dies while the next is requested.
        first = self.names()[0]
        requested = len(self.told(service, "machine_requested"))
        self.cluster.delete_pod(first, gracePeriodSeconds=0)
        wait_for(lambda: len(self.told(service, "machine_requested")) > requested, "the next request")
        service.kill()
        service.wait()
        self.assertGreaterEqual(len(self.names()), NODES - 1, "pods live on without the service")
        self.free_lease()
        service = self.serve_kubernetes()
        wait_for(lambda: self.exactly(NODES), "exactly what is wanted, after the loss of the service")
        self.stop(service)

    def test_requests_and_answers_may_be_lost_and_the_server_have_too_much_to_do(self):
        path = FaultyPath(self.cluster)
        self.addCleanup(path.close)
        service = self.serve_kubernetes(server=path.url)
        path.faults.update(lost_request=1, lost_answer=2, overload=2)
        self.submit(steps=10_000, trials=NODES)
        wait_for(lambda: self.exactly(NODES), "exactly what is wanted")
        path.faults.update(lost_request=1, lost_answer=1, overload=2)
        self.cluster.delete_pod(self.names()[0])
        wait_for(lambda: not +path.faults and self.exactly(NODES), "exactly what is wanted, again")
        wait_for(lambda: not self.warnings(), "no warning to be left")
        self.stop(service)

    def test_one_of_two_services_leads_and_the_other_takes_over(self):
        path = FaultyPath(self.cluster)
        self.addCleanup(path.close)
        first = self.serve_kubernetes(node_lease=LEASE_S, server=path.url, lease_s=6)
        self.submit(steps=10_000, trials=2)
        wait_for(lambda: len(self.nodes()) >= 2, "nodes")
        following = {"node_lease": LEASE_S}
        second = self.start_service(**following)
        wait_for(lambda: self.told(second, "lease_waits"), "the second to wait")
        before = set(self.names())
        path.faults.update(overload=1_000_000)  # it is cut off, and cannot know whether another leads
        self.assertEqual(first.wait(LONG_S), 1)
        self.assertIn("it has not been renewed for", *self.told(first, "lease_lost"))
        wait_for(lambda: self.told(second, "lease_taken"), "the second to lead")
        wait_for(lambda: set(self.nodes_of(second)) and before <= set(self.names("Running")), "the pods to be taken over")
        self.wait_service(second)
        third = self.start_service(**following)
        wait_for(lambda: self.told(third, "lease_waits"), "the third to wait")
        self.stop(second)  # and gives the lease back: nobody waits for it to expire
        wait_for(lambda: self.told(third, "lease_taken"), "the third to lead")
        self.wait_service(third)
        self.stop(third)

    def nodes_of(self, service):
        """None while it does not answer yet."""
        try:
            return self.nodes()
        except OSError:
            self.assertIsNone(service.poll(), self.output(service))
            return []

    def test_a_token_that_is_exchanged_is_read_again(self):
        pathlib.Path(self.token).write_text(self.cluster.new_token(bound="old-session"))
        service = self.serve_kubernetes()
        self.submit(steps=10_000, trials=NODES)
        wait_for(lambda: self.exactly(NODES), "all nodes")
        self.cluster.admin.do("DELETE", path_of("secrets", "old-session"))
        self.cluster.delete_pod(self.names()[0])  # so that something is to be done
        wait_for(lambda: "does not take the token" in self.warnings(), "the warning")
        pathlib.Path(self.token).write_text(self.cluster.new_token())
        wait_for(lambda: self.exactly(NODES), "exactly what is wanted")
        wait_for(lambda: not self.warnings(), "the warning to go")
        self.stop(service)

    def test_users_images_get_the_agent_by_an_init_container(self):
        service = self.serve_kubernetes(image=BARE_IMAGE, agent_image=IMAGE)
        self.submit(steps=6, trials=2, pause=0.1, also=self.until_go())
        containers = wait_for(lambda: self.cluster.pods("Running"), "pods")[0]["spec"]
        self.assertEqual([c["image"] for c in containers["containers"]], [BARE_IMAGE])
        self.assertEqual([c["image"] for c in containers["initContainers"]], [IMAGE])
        self.go()
        wait_for(self.complete, "the study to end")
        self.stop(service)

    def check_trouble(self, expected, **options):
        """It is told once, in the log and by `tuner pool`."""
        service = self.serve_kubernetes("--min-nodes", "1", **options)
        wait_for(lambda: re.search(expected, self.warnings()), "the warning")
        self.assertRegex(self.run_tuner("pool", "--service", self.grpc).stdout, expected)
        lines = self.told(service, "engine_trouble")
        self.assertEqual(len([line for line in lines if re.search(expected, line)]), 1, lines)
        return service

    def test_images_that_cannot_be_pulled_are_named(self):
        service = self.check_trouble("image .missing:1. cannot be pulled", image="missing:1")
        self.agent(1, "mine")
        self.submit(steps=3, trials=3, pause=0.1)
        wait_for(self.complete, "the study to end on the node that there is")
        self.stop(service)

    def test_pods_that_fit_nowhere_are_told(self):
        self.stop(self.check_trouble("0/4 nodes are available: 4 Insufficient nvidia.com/gpu", gpus=64))

    def test_a_quota_that_is_used_up_is_told(self):
        hard = {"pods": "0"}
        self.cluster.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": hard}})
        self.cluster.admin.patch(path_of("resourcequotas", "none", "status"), {"status": {"hard": hard, "used": hard}})
        try:
            self.stop(self.check_trouble("exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"))
        finally:
            self.cluster.admin.do("DELETE", path_of("resourcequotas", "none"))

    def test_rights_that_are_missing_are_named(self):
        role = path_of("roles.rbac.authorization.k8s.io/v1", "espalier")
        rules = self.cluster.admin.get(role)["rules"]
        may = [dict(rule, verbs=[verb for verb in rule["verbs"] if rule["resources"] != ["pods"] or verb != "create"])
               for rule in rules]
        self.cluster.admin.patch(role, {"rules": may})
        try:
            self.stop(self.check_trouble("cannot create resource .pods. in API group .* in the namespace .espalier."))
        finally:
            self.cluster.admin.patch(role, {"rules": rules})


class DeploymentTest(Kubernetes):
    """What `kubectl apply -k deploy/kubernetes` makes: the service's pod, as the Deployment's controllers make it, under its
    ServiceAccount, as its user, with its volume, and found by its Service's name."""

    def create_service_pod(self):
        self.addCleanup(self.keep_service_log)
        deployment, = (obj for obj in self.manifests if obj["kind"] == "Deployment")
        template = deployment["spec"]["template"]
        container, = template["spec"]["containers"]
        container["image"] = IMAGE  # by kustomize
        # No scheduler would give it a node: the controller that binds its volume is not here.
        self.cluster.create("pods", {"metadata": dict(template["metadata"], name="service"),
                                     "spec": dict(template["spec"], nodeName="n1")})

    def keep_service_log(self):
        self._last_printed += f"\n==== the service's pod\n{self.service_log()[-10_000:]}"

    def service_log(self):
        def text(path):
            try:
                return path.read_text()
            except FileNotFoundError:  # of a pod that is just being removed
                return ""
        return "".join(map(text, self.cluster.folder.glob("nodes/*/*/service.log")))

    def restarts(self):
        """Of the service's container. It may lose its Lease where the machine stands still for long; it has no other reason
        to end."""
        status, = self.cluster.admin.get(path_of("pods", "service"))["status"].get("containerStatuses") or [{}]
        restarts, log = status.get("restartCount", 0), self.service_log()
        self.assertLessEqual(restarts, log.count("event=lease_lost"), log)
        return restarts

    @property
    def data(self):
        """The service's volume."""
        return self.cluster.folder / "nodes" / "espalier"

    @property
    def service(self):
        return ("--service", "127.0.0.1:7077", "--token-file", self.data / "pool.db.credentials" / "administer.token")

    def answers(self):
        self.restarts()
        return self.service[-1].exists() and \
            subprocess.run([TUNER, "ls", *map(str, self.service)], capture_output=True).returncode == 0

    def end_service(self):
        self.restarts()
        self.cluster.delete_pod("service")
        wait_for(lambda: self.cluster.admin.call("GET", path_of("pods", "service"))[0] == 404, "the service to end")

    def test_the_service_runs_as_it_is_deployed(self):
        self.create_service_pod()
        service = self.service
        wait_for(self.answers, "the service to answer")
        script = self.resumable_trial(3, 0.1)
        self.run_tuner("submit", self.study([script], trials=3), *service)
        wait_for(lambda: self.export(*service)["study"]["state"] == "STUDY_COMPLETE", "the study to end")
        ca = ssl.create_default_context(cafile=str(self.data / "pool.db.credentials" / "certificate.pem"))
        ca.check_hostname = False
        with urllib.request.urlopen("https://127.0.0.1:7078/healthz", context=ca) as answer:  # its probes' question
            self.assertEqual(answer.status, 200)
        self.assertEqual(self.run_tuner("version").stdout.split()[1], IMAGE.split(":")[1], "the tag in the manifests")
        long_study = self.study([self.resumable_trial(100_000, 0.1)], name="long", trials=1)
        self.run_tuner("submit", long_study, *service)
        def steps():
            trials = self.export(*service, study="long")["trials"]
            return len(trials[0].get("values", [])) if trials else 0
        wait_for(lambda: steps() > 2, "the trial to train")
        before = self.names("Running")
        self.end_service()
        self.assertLessEqual(set(before), set(self.names("Running")), "it keeps its pods")
        self.create_service_pod()
        wait_for(self.answers, "the service to answer again")
        so_far = steps()
        wait_for(lambda: steps() > so_far, "the trial to go on")
        self.assertEqual(self.export(*service, study="long")["trials"][0]["restarts"], 0)
        self.run_tuner("stop", "long", *service)
        wait_for(lambda: not self.names(), "the pool to shrink to nothing", LONG_S)
        self.end_service()
        self.assertEqual(self.forbidden_used(), [])

    def test_a_service_that_has_lost_its_lease_is_started_again(self):
        self.create_service_pod()
        wait_for(self.answers, "the service to answer")
        before = self.service_log().count("event=lease_taken")
        self.cluster.kill_api_server()
        wait_for(lambda: "event=lease_lost" in self.service_log(), "the service to give its Lease up")
        wait_for(lambda: "event=lease_waits" in self.service_log(), "its successor to wait")
        self.cluster.start_api_server()
        wait_for(lambda: self.service_log().count("event=lease_taken") > before, "its successor to lead", LONG_S)
        wait_for(self.answers, "the successor to answer")
        wait_for(lambda: self.restarts() >= 1, "the API server to know of it")
        self.end_service()

    def test_the_manifests_say_the_same_image_and_names(self):
        by_kind = {obj["kind"]: obj for obj in self.manifests}
        self.assertEqual(by_kind["ConfigMap"]["data"]["IMAGE"], IMAGE)
        if self.cluster.kind == "small":
            print("kubectl apply -k deploy/kubernetes: not run, there is no real API server here")
            return
        for how in (["--dry-run=server"], [], []):  # the second time nothing changes
            done = self.cluster.kubectl("apply", "-k", ROOT / "deploy/kubernetes", *how)
        self.assertEqual({line.split()[-1] for line in done.splitlines()}, {"unchanged"}, done)


if __name__ == "__main__":
    unittest.main()
