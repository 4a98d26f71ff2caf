"""The small API server for tests in C++ (tests/server/engines/small_kubernetes.h): one process for each test program, which
tells it over its standard input what is to happen. It ends when its input does.

    small_scripted.py CERTIFICATE KEY

Each line is a command with its arguments, [NAME, ...] in JSON, and is answered with one line of JSON; a command that is
refused ends the process. Each test has a namespace of its own, with what was asked there and what is to fail. A pod runs as
soon as it is bound, on a node that has room for all, and ends as soon as it is to, until the test loses that machine.
"""
import collections
import itertools
import json
import os
import pathlib
import re
import sys
import threading

from small_api import Exchange, Request, make_server
from small_store import Refused, merge, now

NODE = "espalier.dev/node"
PLACE = re.compile(r"/namespaces/([^/?]+)(/.*)")
PATIENCE_S = 60
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Lab:
    """A namespace, as far as its test directs it."""

    def __init__(self):
        self.asked = threading.Condition()  # guards what follows
        self.requests, self.faults = [], {}
        self.page = None
        self.machine_lost = False  # guarded by the store's

    def hear(self, **request):
        """The fault that befalls the request, or None."""
        with self.asked:
            self.requests.append(request)
            self.asked.notify_all()
            line = f"{request['method']} {request['path']}"
            fault = next((one for begin, one in self.faults.items() if line.startswith(begin) and one["times"]), None)
            if fault:
                fault["times"] -= 1
            return fault

    def heard(self, begin):
        return [one for one in self.requests if f"{one['method']} {one['path']}".startswith(begin)]


class ScriptedExchange(Exchange):
    labs = {}  # by namespace

    def serve(self, body):
        place = PLACE.search(self.path)
        lab = self.labs.get(place[1]) if place else None
        if not lab:
            return super().serve(body)
        fault = lab.hear(method=self.command, path=place[2], content_type=self.headers.get("Content-Type", ""),
                         body="" if body is None else json.dumps(body, sort_keys=True, separators=(",", ":")))
        if fault and not fault["code"]:
            self.close_connection = True
            self.rfile.read(1)  # until the client has given up
            return None
        if fault:
            with self.api.store.changed:
                self.api.access.user_of(self.headers.get("Authorization"))  # strangers are told that they are
            status = Refused(fault["code"], fault["message"], fault["reason"]).status()
            return self.send(fault["code"], status, **fault["headers"])
        if lab.page:
            self.path = re.sub(r"\blimit=\d+", f"limit={lab.page}", self.path)
        return super().serve(body)


def key_of(pod):
    return "pods", pod["metadata"]["namespace"], pod["metadata"]["name"]


def run_pods(store, labs):
    """The thread of a kubelet whose pods do nothing."""
    started = set()
    with store.changed:
        while True:
            version = store.version
            for pod in store.all_of("pods"):
                meta = pod["metadata"]
                if labs[meta["namespace"]].machine_lost:
                    continue
                if "deletionTimestamp" in meta:
                    store.write(key_of(pod), pod, "DELETED")
                elif pod["spec"].get("nodeName") and meta["uid"] not in started:
                    started.add(meta["uid"])
                    store.write(key_of(pod), merge(pod, {"status": {"phase": "Running", "startTime": now()}}))
            if version == store.version:
                store.changed.wait()


class Commands:
    def __init__(self, server, labs):
        self.port, self.api, self.labs = server.server_address[1], ScriptedExchange.api, labs
        self.store = self.api.store
        self.numbers = itertools.count(1)
        room = {"cpu": "1M", "memory": "1Ti", "pods": "1M"}
        self.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "spec": {}, "status": {
            "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}})

    def ask(self, method, path, body=None):
        """The object; whoever asks has all rights."""
        with self.store.changed:
            return self.api.answer(Request(method, path, self.store), body)[1]

    def open(self):
        """A new namespace, with an account that has all rights in it."""
        lab = f"lab-{next(self.numbers)}"
        self.labs[lab] = Lab()
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": lab}})
        for account in ("default", "service"):
            self.ask("POST", f"/api/v1/namespaces/{lab}/serviceaccounts", {"metadata": {"name": account}})
        self.ask("POST", f"{RBAC}/namespaces/{lab}/roles", {"metadata": {"name": "service"}, "rules": [EVERYTHING]})
        self.ask("POST", f"{RBAC}/namespaces/{lab}/rolebindings", {
            "metadata": {"name": "service"}, "roleRef": {"kind": "Role", "name": "service"},
            "subjects": [{"kind": "ServiceAccount", "name": "service", "namespace": lab}]})
        self._make_session(lab)
        return {"namespace": lab, "port": self.port, "token": self._new_token(lab)}

    def close(self, lab):
        """Removes all that is in the namespace."""
        with self.store.changed:
            for key, obj in list(self.store.objects.items()):
                if key[1] == lab:
                    self.store.write(key, obj, "DELETED")

    def exchange_token(self, lab):
        """A new token of the account; the one before is not taken any more."""
        self.ask("DELETE", f"/api/v1/namespaces/{lab}/secrets/session")
        self._make_session(lab)
        return self._new_token(lab)

    def _make_session(self, lab):
        """A secret that tokens are bound to."""
        self.ask("POST", f"/api/v1/namespaces/{lab}/secrets", {"metadata": {"name": "session"}})

    def _new_token(self, lab):
        spec = {"expirationSeconds": 86400, "boundObjectRef": {"kind": "Secret", "name": "session"}}
        made = self.ask("POST", f"/api/v1/namespaces/{lab}/serviceaccounts/service/token", {"spec": spec})
        return made["status"]["token"]

    def apply(self, manifest):
        """Makes what a file says of objects that are in no namespace, if they are not there."""
        for path, obj in self._read(manifest):
            if (path.rpartition("/")[2], "", obj["metadata"]["name"]) not in self.store.objects:
                self.ask("POST", path, obj)

    def remove(self, manifest):
        for path, obj in self._read(manifest):
            self.ask("DELETE", f"{path}/{obj['metadata']['name']}")

    def _read(self, manifest):
        import yaml  # few tests need it
        return [(f"/apis/{obj['apiVersion']}/{obj['kind'].lower()}s", obj)
                for obj in yaml.safe_load_all(pathlib.Path(manifest).read_text())]

    def requests(self, lab, begin, at_least):
        """Those that begin so, once there are so many."""
        lab = self.labs[lab]
        with lab.asked:
            lab.asked.wait_for(lambda: len(lab.heard(begin)) >= at_least, PATIENCE_S)
            return lab.heard(begin)

    def fail(self, lab, begin, fault):
        with self.labs[lab].asked:
            self.labs[lab].faults[begin] = fault

    def set_page(self, lab, objects):
        self.labs[lab].page = objects

    def lose_machine(self, lab):
        with self.store.changed:
            self.labs[lab].machine_lost = True

    def nodes(self, lab):
        """How many pods each node of the pool has, but for those that are to end."""
        with self.store.changed:
            return collections.Counter(self._node(pod) for pod in self.store.all_of("pods", lab)
                                       if "deletionTimestamp" not in pod["metadata"])

    def joined(self, lab, node):
        """How many pods of it were made, so far."""
        with self.store.changed:
            made = [event[3] for event in self.store.events_since(self.store.oldest, "pods", lab) if event[1] == "ADDED"]
        return sum(self._node(pod) == node for pod in made)

    def runs(self, lab, node, within_s):
        """Whether a pod of the node runs, at last."""
        def there():
            return any(self._node(pod) == node and pod["status"]["phase"] == "Running" and
                       "deletionTimestamp" not in pod["metadata"] for pod in self.store.all_of("pods", lab))
        with self.store.changed:
            return self.store.changed.wait_for(there, within_s)

    def set_status(self, lab, node, status):
        with self.store.changed:
            for pod in self.store.all_of("pods", lab):
                if self._node(pod) == node:
                    self.ask("PATCH", f"/api/v1/namespaces/{lab}/pods/{pod['metadata']['name']}/status", {"status": status})

    def _node(self, pod):
        return pod["metadata"]["labels"][NODE]


def main():
    config = {"port": 0, "certificate": sys.argv[1], "key": sys.argv[2],
              **dict.fromkeys(("tokens", "audit_log", "journal"), os.devnull)}
    server = make_server(config, ScriptedExchange)
    commands = Commands(server, ScriptedExchange.labs)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=run_pods, args=(commands.store, commands.labs), daemon=True).start()
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(commands, name)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
