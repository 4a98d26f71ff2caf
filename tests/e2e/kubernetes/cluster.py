"""A Kubernetes on this machine, for a test or a benchmark: API server and scheduler, and nodes with GPUs that are none,
each with a kubelet of ours. The real ones, where scripts/setup-kubernetes.sh has made them; else small_api.py, which
contract_test.py compares with them. ESPALIER_KUBERNETES=small takes the small one all the same.
"""
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile

from api_client import ApiClient, path_of
from harness import BIN, ROOT, wait_for

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACE = "espalier"
IMAGE, BARE_IMAGE = "espalier:0.1.0", "users-image:1"  # with `tuner`, and without
BUNDLE = "/opt/espalier"
PLAIN_PATH = "/usr/local/bin:/usr/bin:/bin"
TOKEN_S = 3600
AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                "rules": [{"level": "Metadata"}]}


def real_programs():
    """The folder of the real ones; none: they have not been made here."""
    if os.environ.get("ESPALIER_KUBERNETES") == "small":
        return None
    done = subprocess.run([ROOT / "scripts/setup-kubernetes.sh", "--where"], capture_output=True, text=True)
    return pathlib.Path(done.stdout.strip()) / "bin" if done.returncode == 0 else None


def free_port():
    """Nobody else takes ports in the network namespace of a test."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def manifests(folder=ROOT / "deploy/kubernetes"):
    """The objects that `kubectl apply -k` makes, in its order."""
    read = "import json, sys, yaml; print(json.dumps([list(yaml.safe_load_all(open(name))) for name in sys.argv[1:]]))"
    def load(*names):
        paths = [folder / name for name in names]
        return json.loads(subprocess.run(["/usr/bin/python3", "-c", read, *paths], check=True, capture_output=True).stdout)
    kustomization = load("kustomization.yaml")[0][0]
    return [obj for objects in load(*kustomization["resources"]) for obj in objects]


class Cluster:
    def __init__(self, nodes=4, gpus=2, small=False, kubelets=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-kubernetes-"))
        self.programs = None if small else real_programs()
        self.kind = "small" if self.programs is None else "real"
        self.processes, self.gpus = {}, gpus
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.ca = self.folder / "certificate.pem"
        try:
            self._make_credentials()
            self._make_image()
            if self.kind == "real":
                self._start_etcd()
            self.start_api_server()
            self._make_namespace()
            if self.kind == "real":
                self._start_scheduler()
            for name in (f"n{number + 1}" for number in range(nodes)):
                self.add_node(name)
                if kubelets:
                    self.start_kubelet(name)
        except BaseException:
            self.down()
            raise

    # Processes.

    def _start(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=subprocess.STDOUT, cwd=self.folder, start_new_session=True)

    def _lives(self, name):
        process = self.processes[name]
        assert process.poll() is None, f"{name} has ended: {(self.folder / f'{name}.log').read_text()[-3000:]}"
        return True

    def _kill(self, name):
        process = self.processes.pop(name, None)
        if process:
            process.kill()
            process.wait()

    def down(self):
        for name in list(self.processes):
            self._kill(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def _make_credentials(self):
        self.key = self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out", self.ca,
                        "-days", "30", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        self.token = secrets.token_hex(16)
        self.tokens = self._write("tokens.csv", f'{self.token},admin,1,"system:masters"\n')
        self.admin = self.client(self.token)

    def client(self, token):
        return ApiClient(f"127.0.0.1:{self.port}", str(self.ca), token)

    def _make_image(self):
        bundle = self.folder / "image"
        (bundle / "bin").mkdir(parents=True)
        self.images = {
            IMAGE: {"path": f"{BUNDLE}/bin:{PLAIN_PATH}",
                    "mounts": {BUNDLE: str(bundle), f"{BUNDLE}/bin/tuner": str(BIN / "tuner")}},
            BARE_IMAGE: {"path": PLAIN_PATH, "mounts": {}}}

    # The control plane.

    def _start_etcd(self):
        self.etcd = f"http://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        self._start("etcd", [self.programs / "etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", self.etcd,
                             "--advertise-client-urls", self.etcd, "--listen-peer-urls", peers,
                             "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"])

    def start_api_server(self):
        if self.kind == "small":
            config = {"port": self.port, "certificate": str(self.ca), "key": str(self.key), "tokens": str(self.tokens),
                      "audit_log": str(self.folder / "audit.log"), "journal": str(self.folder / "journal")}
            self._start("api", [sys.executable, HERE / "small_api.py", self._write("small_api.json", config)])
        else:
            self._start("api", self._real_api_server())
        def ready():
            self._lives("api")
            try:
                return self.admin.call("GET", "/readyz")[0] == 200
            except OSError:
                return False
        wait_for(ready, "the API server")

    def _real_api_server(self):
        return [self.programs / "kube-apiserver", f"--etcd-servers={self.etcd}", "--bind-address=127.0.0.1",
                f"--secure-port={self.port}", f"--tls-cert-file={self.ca}", f"--tls-private-key-file={self.key}",
                f"--cert-dir={self.folder}", f"--token-auth-file={self.tokens}", "--authorization-mode=RBAC",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-signing-key-file={self.key}", f"--service-account-key-file={self.key}",
                "--feature-gates=BoundServiceAccountTokenVolume=true",  # as everywhere since 1.21
                "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", "--advertise-address=127.0.0.1",
                f"--audit-policy-file={self._write('audit_policy.json', AUDIT_POLICY)}",
                f"--audit-log-path={self.folder / 'audit.log'}"]

    def _start_scheduler(self):
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                  "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
                  "users": [{"name": "admin", "user": {"token": self.token}}],
                  "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}]}
        self.kubeconfig = self._write("kubeconfig.json", config)
        self._start("scheduler", [self.programs / "kube-scheduler", f"--kubeconfig={self.kubeconfig}",
                                  "--leader-elect=false", "--port=0", "--secure-port=0"])

    def _make_namespace(self):
        for name in (NAMESPACE, "elsewhere"):
            self.create("namespaces", {"metadata": {"name": name}})
            # Of the controllers that are not here.
            self.create("serviceaccounts", {"metadata": {"name": "default"}}, name)
            self.create("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": self.ca.read_text()}},
                        name)

    def kill_api_server(self):
        """As kill -9 does; etcd keeps what was acknowledged."""
        self._kill("api")

    def api_server_lives(self):
        return "api" in self.processes

    # Nodes.

    def add_node(self, name):
        capacity = {"cpu": "8", "memory": "64Gi", "pods": "20", "nvidia.com/gpu": str(self.gpus)}
        node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {}}
        status = {"capacity": capacity, "allocatable": capacity, "conditions": [{"type": "Ready", "status": "True"}]}
        self.create("nodes", node, "")
        self.admin.patch(path_of("nodes", name, "status"), {"status": status})
        self.admin.patch(path_of("nodes", name), {"spec": {"taints": None}})  # not ready: its controller would take it off

    def start_kubelet(self, name):
        config = {"node": name, "address": f"127.0.0.1:{self.port}", "ca": str(self.ca), "token": self.token,
                  "folder": str(self.folder / "nodes" / name), "images": self.images, "gpus": self.gpus}
        self._start(name, [sys.executable, HERE / "kubelet.py", self._write(f"{name}.json", config)])

    def lose_node(self, name):
        """The machine is off. The API server still has the node, as ready, and its pods."""
        self._kill(name)

    # Objects.

    def create(self, resource, body, namespace=NAMESPACE):
        return self.admin.create(path_of(resource, namespace=namespace), body)

    def apply(self, obj):
        """Makes an object of a manifest, or replaces it."""
        group = obj["apiVersion"] if "/" in obj["apiVersion"] else ""
        plural = obj["kind"].lower() + "s"
        resource = f"{plural}.{group}" if group else plural
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        code, answer = self.admin.call("POST", path_of(resource, namespace=namespace), obj)
        if code == 409:
            return self.admin.patch(path_of(resource, name, namespace=namespace), obj)
        assert code == 201, (code, answer)
        return answer

    def kubectl(self, *words):
        """What it prints. The real ones alone have it."""
        command = [self.programs / "kubectl", f"--kubeconfig={self.kubeconfig}", *words]
        done = subprocess.run([str(word) for word in command], text=True, capture_output=True, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pods(self, *phases):
        """Of the pool's nodes that are there: all, or those of these phases."""
        found = self.admin.get(path_of("pods", labelSelector="espalier.dev/pool"))["items"]
        return [pod for pod in found if not phases or pod["status"].get("phase") in phases]

    def delete_pod(self, name, **options):
        return self.admin.call("DELETE", path_of("pods", name), options)

    def new_token(self, account="espalier", bound=""):
        """A token of a ServiceAccount; it ends with the Secret that it is bound to."""
        spec = {"expirationSeconds": TOKEN_S}
        if bound:
            secret = self.create("secrets", {"metadata": {"name": bound}})
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Secret", "name": bound, "uid": secret["metadata"]["uid"]}
        path = path_of("serviceaccounts", account, "token")
        answer = self.admin.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
        return answer["status"]["token"]

    def audited(self, user):
        """(verb, group, resource with subresource, name, code) of each request of the user."""
        for line in (self.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            what = event.get("objectRef") or {}
            if event["user"].get("username") == user:
                resource = "/".join(filter(None, (what.get("resource", event.get("requestURI", "?")), what.get("subresource"))))
                yield (event["verb"], what.get("apiGroup", ""), resource, what.get("name", ""),
                       event.get("responseStatus", {}).get("code"))
