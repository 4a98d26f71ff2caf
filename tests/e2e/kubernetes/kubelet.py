"""A small kubelet: runs the pods that are bound to its node, as containers of local processes (container.py), and tells
the API server what becomes of them. When it is killed, its containers are: it is a whole machine.

    kubelet.py CONFIG.json    {"node", "address", "ca", "token", "folder", "images": {name: {"path", "mounts"}}, "gpus"}

An image is a name with what it brings: where programs are looked for, and folders that are seen at some paths. All else of
a container is the machine's. An image that it does not know cannot be pulled. Init containers, restartPolicy Never and
Always, most volumes, SIGTERM with a deletion and SIGKILL after its grace period, as a kubelet has them. Services have the
machine's address under their names, as if there were a DNS server and a proxy.
"""
import base64
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

from api_client import PATCH, ApiClient, path_of

LOOK_S = 0.02
AGAIN_S = 0.2
PULL_BACK_OFF_S = 2
MESSAGE_BYTES = 2048
PASSED_ON = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS")
HERE = pathlib.Path(__file__).resolve().parent


def timestamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Ended(Exception):
    """The pod is to end, or is gone."""


class PodRun(threading.Thread):
    def __init__(self, kubelet, pod):
        super().__init__(daemon=True)
        self.kubelet, self.config = kubelet, kubelet.config
        self.api = ApiClient(self.config["address"], self.config["ca"], self.config["token"])
        self.spec, self.meta, self.phase = pod["spec"], pod["metadata"], pod["status"].get("phase", "Pending")
        self.folder = pathlib.Path(self.config["folder"]) / self.meta["uid"]
        self.statuses = {"initContainerStatuses": {}, "containerStatuses": {}}
        self.restarts = collections.Counter()  # of containers, by name
        self.started = timestamp()
        self.end_by = None  # in monotonic time; none: it is not to end
        self.told = set()  # processes that are to end
        self.gone = False

    # Called by the kubelet.

    def end(self, grace_s):
        by = time.monotonic() + grace_s
        self.end_by = by if self.end_by is None else min(self.end_by, by)

    def vanish(self):
        self.gone = True
        self.end(0)

    # The pod's own thread.

    def run(self):
        if self.phase == "Pending":
            try:
                self.phase = "Succeeded" if self.run_all() else "Failed"
            except Ended:
                self.phase = "Failed"
            self.tell()
        elif self.phase == "Running":  # before the machine was switched off: nothing of it is left
            self.phase = "Failed"
            for container in self.spec["containers"]:
                self.note("containerStatuses", container, {"terminated": {"exitCode": 137, "reason": "Unknown"}})
            self.tell()
        self.leave()

    def run_all(self):
        """Whether all has succeeded."""
        self.folder.mkdir(parents=True)
        self.gpus = self.kubelet.take_gpus(self.wanted_gpus())
        try:
            volumes = self.make_volumes()
            return all(self.run_containers([container], volumes, "initContainerStatuses")
                       for container in self.spec.get("initContainers") or ()) and \
                self.run_containers(self.spec["containers"], volumes, "containerStatuses")
        finally:
            self.kubelet.give_gpus(self.gpus)

    def leave(self):
        """Removes the pod from the API server once it is to be deleted; one that has ended by itself stays."""
        while self.end_by is None:
            time.sleep(AGAIN_S)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.meta["uid"]}}
        while not self.gone:
            try:
                self.api.call("DELETE", self.path(), options)
                self.gone = True
            except OSError:
                time.sleep(AGAIN_S)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.kubelet.forget(self.meta["uid"])

    def path(self, subresource=""):
        return path_of("pods", self.meta["name"], subresource, self.meta["namespace"])

    def tell(self):
        """Patches the status, whenever the API server can be reached."""
        ready = "True" if self.phase == "Running" else "False"
        status = {"phase": self.phase, "startTime": self.started, "podIP": "127.0.0.1", "hostIP": "127.0.0.1",
                  **{kind: list(by_name.values()) for kind, by_name in self.statuses.items()},
                  "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}]}
        while not self.gone:
            try:
                if self.api.call("PATCH", self.path("status"), {"metadata": {"uid": self.meta["uid"]}, "status": status},
                                 PATCH)[0] < 500:
                    return
            except OSError:
                pass
            time.sleep(AGAIN_S)

    def wanted_gpus(self):
        return sum(int(((container.get("resources") or {}).get("limits") or {}).get("nvidia.com/gpu", 0))
                   for container in self.spec["containers"])

    # Volumes.

    def make_volumes(self):
        """{name: folder}"""
        made = {}
        for volume in self.spec.get("volumes") or ():
            folder = self.folder / "volumes" / volume["name"]
            if "persistentVolumeClaim" in volume:
                folder = pathlib.Path(self.config["folder"]).parent / volume["persistentVolumeClaim"]["claimName"]
            folder.mkdir(parents=True, exist_ok=True)
            self.fill(folder, volume)
            for source in (volume.get("projected") or {}).get("sources") or ():
                self.fill(folder, source)
            if self.group is not None:
                shutil.chown(folder, group=self.group)
                folder.chmod(0o2775)
            made[volume["name"]] = str(folder)
        return made

    @property
    def group(self):
        """That volumes are made for; none: root's."""
        return (self.spec.get("securityContext") or {}).get("fsGroup")

    def fill(self, folder, source):
        """With the files of a secret, a configMap, fields of the pod, or a token of its account."""
        files = {}
        for kind, plural in (("secret", "secrets"), ("configMap", "configmaps")):
            if kind in source:
                files = self.files_of(source[kind], plural)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            files[item["path"]] = self.field(item["fieldRef"]["fieldPath"]).encode()
        if token := source.get("serviceAccountToken"):
            path = path_of("serviceaccounts", self.spec["serviceAccountName"], "token", self.meta["namespace"])
            issued = self.persist("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                                                 "spec": {"expirationSeconds": token["expirationSeconds"]}})
            files[token["path"]] = issued["status"]["token"].encode()
        for path, content in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def files_of(self, source, plural):
        """{path: content} of a secret or a configMap."""
        name = source.get("secretName") or source.get("name")
        obj = self.persist("GET", path_of(plural, name, "", self.meta["namespace"]))
        data = obj.get("data") or {}
        names = {item["key"]: item["path"] for item in source.get("items") or ()} or {key: key for key in data}
        return {path: base64.b64decode(data[key]) if plural == "secrets" else data[key].encode()
                for key, path in names.items()}

    def persist(self, method, path, body=None):
        """The answer, whenever there is one: what is not there may come."""
        while True:
            try:
                return self.api.do(method, path, body)
            except (OSError, AssertionError):
                self.pause(AGAIN_S)

    def pause(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.end_by is not None:
                raise Ended
            time.sleep(LOOK_S)

    # Containers.

    def run_containers(self, containers, volumes, kind):
        """Whether all have succeeded, once they have ended."""
        for container in containers:
            self.pull(container, kind)
        if self.end_by is not None:
            raise Ended
        running = [(container, self.start_container(container, volumes)) for container in containers]
        for container, _ in running:
            self.note(kind, container, {"running": {"startedAt": timestamp()}})
        self.phase = "Running" if kind == "containerStatuses" else "Pending"
        self.tell()
        codes = []
        while running:
            for container, process in list(running):
                if (code := process.poll()) is None:
                    continue
                running.remove((container, process))
                if self.goes_on(kind):
                    running.append((container, self.start_again(container, volumes)))
                    continue
                codes.append(code if code >= 0 else 128 - code)
                self.note(kind, container, {"terminated": self.termination(container, codes[-1])})
            self.end_in_time([process for _, process in running])
            time.sleep(LOOK_S)
        if self.end_by is not None and kind == "initContainerStatuses":
            raise Ended
        return not any(codes)

    def goes_on(self, kind):
        """Whether a container that has ended is started again."""
        always = self.spec.get("restartPolicy", "Always") == "Always"
        return always and kind == "containerStatuses" and self.end_by is None

    def start_again(self, container, volumes):
        process = self.start_container(container, volumes)
        self.restarts[container["name"]] += 1
        self.note("containerStatuses", container, {"running": {"startedAt": timestamp()}})
        threading.Thread(target=self.tell, daemon=True).start()  # which waits where the API server is away
        return process

    def end_in_time(self, running):
        if self.end_by is None:
            return
        for process in running:
            if time.monotonic() >= self.end_by:
                process.kill()
            elif process not in self.told:
                process.terminate()
                self.told.add(process)

    def termination(self, container, code):
        reason = "Completed" if code == 0 else "Error"
        end = {"exitCode": code, "reason": reason, "finishedAt": timestamp()}
        if code != 0 and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            end["message"] = self.log_of(container).read_bytes()[-MESSAGE_BYTES:].decode(errors="replace")
        return end

    def note(self, kind, container, state):
        self.statuses[kind][container["name"]] = {
            "name": container["name"], "image": container["image"], "imageID": "", "ready": "running" in state,
            "restartCount": self.restarts[container["name"]], "state": state}

    def pull(self, container, kind):
        image = container["image"]
        reasons = [("ErrImagePull", f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": not found'),
                   ("ImagePullBackOff", f'Back-off pulling image "{image}"')]
        while image not in self.config["images"]:
            reason, message = reasons[0]
            self.note(kind, container, {"waiting": {"reason": reason, "message": message}})
            self.tell()
            reasons.reverse()
            self.pause(PULL_BACK_OFF_S)

    def log_of(self, container):
        return self.folder / (container["name"] + ".log")

    def start_container(self, container, volumes):
        spec = self.folder / (container["name"] + ".json")
        if not spec.exists():  # what it was told at first holds for all its starts: the API server may be away
            self.write_spec(spec, container, volumes)
        with open(self.log_of(container), "ab") as log:
            return subprocess.Popen([sys.executable, HERE / "container.py", spec], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=subprocess.STDOUT, start_new_session=True)

    def write_spec(self, spec, container, volumes):
        image = self.config["images"][container["image"]]
        mounts = {"/etc/hosts": str(self.hosts_file()), **image["mounts"]}
        for mounted in container.get("volumeMounts") or ():
            folder = pathlib.Path(volumes[mounted["name"]]) / mounted.get("subPath", "")
            mounts[mounted["mountPath"]] = str(folder)
        environment = self.environment(container, image)
        words = (container.get("command") or image.get("entrypoint", [])) + (container.get("args") or [])
        root = self.folder / (container["name"] + ".root")
        root.mkdir()
        spec.write_text(json.dumps({
            "command": [expanded(word, environment) for word in words], "environment": environment, "root": str(root),
            "folder": container.get("workingDir") or "/", "mounts": mounts, "group": self.group or 0,
            "user": (self.spec.get("securityContext") or {}).get("runAsUser")}))

    def hosts_file(self):
        names = []
        for service in self.persist("GET", path_of("services", "", "", self.meta["namespace"]))["items"]:
            name = f"{service['metadata']['name']}.{self.meta['namespace']}"
            names += [service["metadata"]["name"], name, name + ".svc"]
        path = self.folder / "hosts"
        path.write_text("".join(f"127.0.0.1 {name}\n" for name in ["localhost", self.meta["name"], *names]))
        return path

    def environment(self, container, image):
        made = {"PATH": image["path"], "HOME": "/root", "HOSTNAME": self.meta["name"],
                **dict(zip(("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"), self.config["address"].split(":"))),
                **{name: os.environ[name] for name in PASSED_ON if name in os.environ}}
        if self.gpus:
            made["NVIDIA_VISIBLE_DEVICES"] = ",".join(self.gpus)
        for source in container.get("envFrom") or ():
            made.update({name: text.decode() for name, text in
                         self.files_of(source["configMapRef"], "configmaps").items()})
        for variable in container.get("env") or ():
            source = variable.get("valueFrom") or {}
            if "fieldRef" in source:
                made[variable["name"]] = self.field(source["fieldRef"]["fieldPath"])
            elif "secretKeyRef" in source:
                found = self.files_of(source["secretKeyRef"], "secrets")
                made[variable["name"]] = found[source["secretKeyRef"]["key"]].decode()
            else:
                made[variable["name"]] = expanded(variable.get("value", ""), made)
        return made

    def field(self, path):
        known = {"status.podIP": "127.0.0.1", "status.hostIP": "127.0.0.1", "spec.nodeName": self.config["node"],
                 **{f"metadata.{key}": self.meta[key] for key in ("name", "namespace", "uid")}}
        return known[path]


def expanded(word, environment):
    """$(NAME) stands for a variable, where there is one, and $$ for one $."""
    def value(match):
        return "$" if match[0] == "$$" else environment.get(match[1], match[0])
    return re.sub(r"\$\$|\$\((\w+)\)", value, word)


class Kubelet:
    def __init__(self, config):
        self.config = config
        self.api = ApiClient(config["address"], config["ca"], config["token"])
        self.lock = threading.Lock()
        self.pods = {}
        self.free_gpus = [f"GPU-{config['node']}-{number}" for number in range(config["gpus"])]

    def forget(self, uid):
        with self.lock:
            self.pods.pop(uid, None)

    def take_gpus(self, count):
        with self.lock:
            taken, self.free_gpus = self.free_gpus[:count], self.free_gpus[count:]
            return taken

    def give_gpus(self, gpus):
        with self.lock:
            self.free_gpus += gpus

    def path(self, **query):
        return path_of("pods", namespace="", fieldSelector=f"spec.nodeName={self.config['node']}", **query)

    def sync(self, pod):
        meta = pod["metadata"]
        with self.lock:
            run = self.pods.get(meta["uid"])
            is_new = run is None
            if is_new:
                run = self.pods[meta["uid"]] = PodRun(self, pod)
        if "deletionTimestamp" in meta:
            run.end(meta.get("deletionGracePeriodSeconds", 0))
        if is_new:
            run.start()

    def vanished(self, uids):
        with self.lock:
            runs = [self.pods[uid] for uid in uids if uid in self.pods]
        for run in runs:
            run.vanish()

    def follow(self):
        """Lists and watches until the stream ends."""
        listed = self.api.get(self.path())
        for pod in listed["items"]:
            self.sync(pod)
        with self.lock:
            known = set(self.pods)
        self.vanished(known - {pod["metadata"]["uid"] for pod in listed["items"]})
        for kind, pod in self.api.watch(self.path(watch="true", resourceVersion=listed["metadata"]["resourceVersion"])):
            if kind == "DELETED":
                self.vanished([pod["metadata"]["uid"]])
            elif kind in ("ADDED", "MODIFIED"):
                self.sync(pod)
            elif kind == "ERROR":
                return

    def run(self):
        while True:
            try:
                self.follow()
            except (OSError, AssertionError):
                pass  # the API server is away, or has just come back
            time.sleep(AGAIN_S)


if __name__ == "__main__":
    Kubelet(json.loads(pathlib.Path(sys.argv[1]).read_text())).run()
