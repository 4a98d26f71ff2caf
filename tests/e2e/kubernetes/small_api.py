"""A small Kubernetes API server: as much of one as pods that come and go need, and no more. The contract test beside it holds
it to what the real one does, wherever that is there.

    small_api.py CONFIG.json    {"port", "certificate", "key", "tokens", "audit_log", "journal"}

Objects of any kind are kept, with resource versions, preconditions, pages and watches; pods are bound to nodes by their
resources, ended with notice, and counted by quotas; users have the rights that roles give them. What is written is in the
journal before it is acknowledged, so that a server that is killed knows it again, as etcd does; the history of watches is
lost, as the real one's is. Bodies are not validated, but for names and a few fields, and custom resources by their schemas.
"""
import base64
import copy
import http.server
import json
import pathlib
import re
import secrets
import ssl
import sys
import threading
import time
import urllib.parse
import uuid

import small_custom
from small_access import Access
from small_scheduler import schedule
from small_store import Refused, Store, matches, merge, now

KINDS = {  # of resources: kind, and whether they are in namespaces
    "namespaces": ("Namespace", False), "nodes": ("Node", False), "pods": ("Pod", True), "secrets": ("Secret", True),
    "configmaps": ("ConfigMap", True), "services": ("Service", True), "events": ("Event", True),
    "serviceaccounts": ("ServiceAccount", True), "resourcequotas": ("ResourceQuota", True),
    "persistentvolumeclaims": ("PersistentVolumeClaim", True), "deployments": ("Deployment", True),
    "leases": ("Lease", True), "roles": ("Role", True), "rolebindings": ("RoleBinding", True),
    "clusterroles": ("ClusterRole", False), "clusterrolebindings": ("ClusterRoleBinding", False),
    "customresourcedefinitions": ("CustomResourceDefinition", False),
}
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
BOOKMARK_S = 1


class NoPage(Exception):
    """Of no kind of a custom group: that is answered without an object."""


class Request:
    """What a request asks: a verb on a resource."""

    def __init__(self, method, target, store):
        url = urllib.parse.urlsplit(target)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        words = [urllib.parse.unquote(word) for word in url.path.strip("/").split("/")]
        if words[:2] == ["api", "v1"]:
            self.group, words = "", words[2:]
        elif words[0] == "apis" and len(words) > 3:
            self.group, words = words[1], words[3:]
        else:
            raise Refused(404, "the server could not find the requested resource")
        self.version = url.path.strip("/").split("/")[2] if self.group else "v1"
        self.namespace = ""
        if words[0] == "namespaces" and len(words) > 2:
            self.namespace, words = words[1], words[2:]
        self.resource, self.name, self.subresource = (words + ["", ""])[:3]
        self.custom = None if self.resource in KINDS else small_custom.find(store, self.resource, self.group, self.version)
        if not self.custom and self.resource not in KINDS:
            raise NoPage() if self.group else Refused(404, "the server could not find the requested resource")
        if self.custom and self.subresource not in ("", "status" if self.custom.has_status else ""):
            raise Refused(404, "the server could not find the requested resource")
        self.kind = self.custom.name if self.custom else KINDS[self.resource][0]
        self.watches = self.query.get("watch") in ("1", "true")
        one = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
        every = {"GET": "watch" if self.watches else "list", "POST": "create", "DELETE": "deletecollection"}
        self.verb = (one if self.name else every).get(method)
        if not self.verb:
            raise Refused(405, "the server does not allow this method on the requested resource")

    @property
    def key(self):
        return self.resource, self.namespace, self.name

    @property
    def api_version(self):
        return f"{self.group}/{self.version}" if self.group else "v1"

    def covered_by(self, rule):
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        def has(what, value):
            return value in (rule.get(what) or ()) or "*" in (rule.get(what) or ())
        names = rule.get("resourceNames") or ()
        return has("apiGroups", self.group) and has("resources", resource) and has("verbs", self.verb) and \
            (not names or self.name in names)

    def named(self):
        return self.resource + (f".{self.group}" if self.group else "") + (f' "{self.name}"' if self.name else "")

    def forbidden_to(self, user):
        resource = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        place = f' in the namespace "{self.namespace}"' if self.namespace else " at the cluster scope"
        return Refused(403, f'{self.named()} is forbidden: User "{user}" cannot {self.verb} resource "{resource}" '
                            f'in API group "{self.group}"{place}')


class Api:
    """What each verb does. One call at a time."""

    def __init__(self, store, access):
        self.store, self.access = store, access

    def answer(self, request, body):
        """(status code, object)"""
        if request.subresource == "token":
            return 201, self.access.issue(request.namespace, request.name, body)
        if request.subresource == "binding" or request.subresource == "eviction":
            return 201, getattr(self, request.subresource)(request, body)
        return getattr(self, request.verb)(request, body)

    def found(self, request):
        obj = self.store.objects.get(request.key)
        if not obj:
            raise Refused(404, f"{request.named()} not found")
        return obj

    def get(self, request, _):
        return 200, self.found(request)

    def list(self, request, _):
        found = [obj for obj in self.store.all_of(request.resource, request.namespace)
                 if matches(obj, request.query.get("labelSelector"), request.query.get("fieldSelector"))]
        version, begin = str(self.store.version), 0
        if token := request.query.get("continue"):
            version, begin = json.loads(base64.b64decode(token))
        limit = int(request.query.get("limit", 0)) or len(found)
        meta = {"resourceVersion": version}
        if len(found) > begin + limit:
            meta["continue"] = base64.b64encode(json.dumps([version, begin + limit]).encode()).decode()
        items = [{k: v for k, v in obj.items() if k not in ("kind", "apiVersion")}
                 for obj in found[begin:begin + limit]]
        return 200, {"kind": request.kind + "List", "apiVersion": request.api_version,
                     "metadata": meta, "items": items}

    def create(self, request, body):
        meta = body.setdefault("metadata", {})
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + secrets.token_hex(3)
        request.name = meta.get("name") or ""
        kind = request.kind
        if not NAME.fullmatch(request.name) or len(request.name) > 253:
            raise Refused(422, f'{kind} "{request.name}" is invalid: metadata.name: Invalid value: "{request.name}"')
        if meta.get("namespace", request.namespace) != request.namespace:
            raise Refused(400, "the namespace of the provided object does not match the namespace sent on the request")
        if request.namespace and ("namespaces", "", request.namespace) not in self.store.objects:
            raise Refused(404, f'namespaces "{request.namespace}" not found')
        if request.resource == "pods":
            self._admit_pod(request, body)
        if request.custom:
            body = request.custom.made(request.custom.admit(request.name, body))
            meta = body["metadata"]
        if request.key in self.store.objects:
            raise Refused(409, f"{request.named()} already exists", "AlreadyExists")
        meta.update(uid=str(uuid.uuid4()), creationTimestamp=now())
        if request.namespace:
            meta["namespace"] = request.namespace
        body.update(kind=kind, apiVersion=request.api_version)
        written = self.store.write(request.key, body)
        if request.resource == "pods":
            self._count_pod(request)
        return 201, written

    def _admit_pod(self, request, body):
        spec = body.setdefault("spec", {})
        kept = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "serviceAccountName": "default"}
        for key, value in kept.items():
            spec.setdefault(key, value)
        for number, container in enumerate(spec.get("containers") or ()):
            for field in ("name", "image"):
                if not container.get(field):
                    raise Refused(422, f'Pod "{request.name}" is invalid: spec.containers[{number}].{field}: '
                                       "Required value")
        if not spec.get("containers"):
            raise Refused(422, f'Pod "{request.name}" is invalid: spec.containers: Required value')
        account = spec["serviceAccountName"]
        if ("serviceaccounts", request.namespace, account) not in self.store.objects:
            raise Refused(403, f'pods "{request.name}" is forbidden: error looking up service account '
                               f'{request.namespace}/{account}: serviceaccount "{account}" not found')
        if spec.get("automountServiceAccountToken", True):
            self._mount_token(spec)
        body["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
        for quota in self.store.all_of("resourcequotas", request.namespace):
            hard = quota["spec"]["hard"].get("pods")
            used = ((quota.get("status") or {}).get("used") or {}).get("pods", "0")
            if hard is not None and int(used) >= int(hard):
                raise Refused(403, f'pods "{request.name}" is forbidden: exceeded quota: {quota["metadata"]["name"]}, '
                                   f"requested: pods=1, used: pods={used}, limited: pods={hard}")

    def _mount_token(self, spec):
        sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                   {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                   {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]
        spec.setdefault("volumes", []).append({"name": "kube-api-access", "projected": {"sources": sources}})
        for container in spec["containers"] + (spec.get("initContainers") or []):
            container.setdefault("volumeMounts", []).append(
                {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"})

    def _count_pod(self, request):
        for quota in self.store.all_of("resourcequotas", request.namespace):
            if "pods" in quota["spec"]["hard"]:
                used = int(((quota.get("status") or {}).get("used") or {}).get("pods", 0)) + 1
                self.store.write(("resourcequotas", request.namespace, quota["metadata"]["name"]),
                                 merge(quota, {"status": {"used": {"pods": str(used)}}}))

    def update(self, request, body):
        return 200, self._change(request, body, body)

    def patch(self, request, body):
        return 200, self._change(request, merge(self.found(request), body), body)

    def _change(self, request, wanted, sent):
        old = self.found(request)
        version = (sent.get("metadata") or {}).get("resourceVersion")
        uid = (sent.get("metadata") or {}).get("uid")
        if (version and version != old["metadata"]["resourceVersion"]) or (uid and uid != old["metadata"]["uid"]):
            raise Refused(409, f"Operation cannot be fulfilled on {request.named()}: the object has been modified; "
                               "please apply your changes to the latest version and try again")
        new = copy.deepcopy(wanted)
        if request.custom:
            new = request.custom.changed(old, request.custom.admit(request.name, new), request.subresource)
        elif request.subresource == "status":
            new = dict(old, status=wanted.get("status"))
        elif "status" in old:
            new["status"] = old["status"]
        kept = ("uid", "creationTimestamp", "namespace", "name", "deletionTimestamp", "deletionGracePeriodSeconds")
        meta = dict(new["metadata"])
        meta.update({key: old["metadata"][key] for key in kept if key in old["metadata"]})
        new.update(metadata=meta, kind=old["kind"], apiVersion=old["apiVersion"])
        return self.store.write(request.key, new)

    def delete(self, request, body):
        obj = self.found(request)
        options = body or {}
        for what, have in (("uid", obj["metadata"]["uid"]), ("resourceVersion", obj["metadata"]["resourceVersion"])):
            wanted = (options.get("preconditions") or {}).get(what, have)
            if wanted != have:
                name = "UID" if what == "uid" else "ResourceVersion"
                raise Refused(409, f"Operation cannot be fulfilled on {request.named()}: Precondition failed: {name} in "
                                   f"precondition: {wanted}, {name} in object meta: {have}")
        if request.resource == "pods":
            grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
            grace = int(obj["spec"]["terminationGracePeriodSeconds"] if grace is None else grace)
            ended = obj["status"].get("phase") in ("Succeeded", "Failed")
            if grace > 0 and obj["spec"].get("nodeName") and not ended:
                return 200, self._give_notice(request, obj, grace)
        gone = self.store.write(request.key, obj, "DELETED")
        if request.resource == "pods":
            return 200, gone
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                     "details": {"name": request.name, "kind": request.resource, "uid": gone["metadata"]["uid"]}}

    def _give_notice(self, request, obj, grace):
        before = obj["metadata"].get("deletionGracePeriodSeconds")
        if before is not None and before <= grace:
            return obj
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + grace))
        return self.store.write(request.key, merge(obj, {"metadata": {"deletionTimestamp": when,
                                                                      "deletionGracePeriodSeconds": grace}}))

    def deletecollection(self, request, body):
        for obj in self.list(request, body)[1]["items"]:
            one = copy.copy(request)
            one.name = obj["metadata"]["name"]
            self.delete(one, body)
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def binding(self, request, body):
        pod = self.found(request)
        if pod["spec"].get("nodeName"):
            raise Refused(409, f'Operation cannot be fulfilled on pods/binding "{request.name}": pod {request.name} is '
                               f'already assigned to node "{pod["spec"]["nodeName"]}"')
        bind(self.store, request.key, body["target"]["name"])
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def eviction(self, request, body):
        return self.delete(request, body.get("deleteOptions"))[1]


def bind(store, key, node):
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()}
    store.write(key, merge(store.objects[key], {"spec": {"nodeName": node}, "status": {"conditions": [condition]}}))


def hold(store, key, message):
    """The pod waits, and says why."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                 "lastTransitionTime": now()}
    if store.objects[key]["status"].get("conditions", [{}])[0].get("message") != message:
        store.write(key, merge(store.objects[key], {"status": {"conditions": [condition]}}))


def bind_pods(store):
    """The scheduler's thread."""
    with store.changed:
        while True:
            version = store.version
            decided = schedule(store.all_of("nodes"), store.all_of("pods"))
            for pod, node, why in decided:
                key = ("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
                bind(store, key, node) if node else hold(store, key, why)
            if version == store.version:
                store.changed.wait()


class Exchange(http.server.BaseHTTPRequestHandler):
    """One connection."""
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one record an answer: a second small one would wait until the first is acknowledged
    api = audit = None  # of the server

    def log_message(self, *_):
        pass

    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        try:
            self.serve(json.loads(text) if text else None)
        except Refused as refused:
            self.send(refused.code, refused.status())
        except NoPage:
            self._send_text(404, b"404 page not found\n", "text/plain; charset=utf-8", {})
        except (ValueError, KeyError, AttributeError, TypeError) as wrong:
            self.send(400, Refused(400, repr(wrong)).status())

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def serve(self, body):
        if self.path in ("/readyz", "/livez", "/healthz"):
            return self.send(200, {})
        with self.api.store.changed:
            user, groups = self.api.access.user_of(self.headers.get("Authorization"))
            request = Request(self.command, self.path, self.api.store)
            code = 500
            try:
                if not self.api.access.allows(user, groups, request):
                    raise request.forbidden_to(user)
                code, answer = (200, None) if request.watches else self.api.answer(request, body)
            except Refused as refused:
                code = refused.code
                raise
            finally:
                self._audit(user, request, code)
        if request.watches:
            return self._watch(request)
        return self.send(code, answer)

    def _audit(self, user, request, code):
        what = {"resource": request.resource, "namespace": request.namespace, "name": request.name,
                "apiGroup": request.group, "subresource": request.subresource}
        self.audit.write(json.dumps({"kind": "Event", "stage": "ResponseStarted" if request.watches else
                                     "ResponseComplete", "verb": request.verb, "user": {"username": user},
                                     "objectRef": {k: v for k, v in what.items() if v},
                                     "responseStatus": {"code": code}}) + "\n")
        self.audit.flush()

    def send(self, code, answer, **headers):
        self._send_text(code, json.dumps(answer).encode(), "application/json", headers)

    def _send_text(self, code, text, kind, headers):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def _watch(self, request):
        """As the real one does, a watch that is too old is answered, and ends with an error in its stream."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        end = time.monotonic() + float(request.query.get("timeoutSeconds", 1800))
        try:
            for event in self._events(request, end):
                text = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def _events(self, request, end):
        store = self.api.store
        with store.changed:
            version = int(request.query.get("resourceVersion") or 0)
            first = []
            if not version:
                first, version = self.api.list(request, None)[1]["items"], store.version
        for obj in first:
            yield {"type": "ADDED", "object": obj}
        ended = False
        while not ended:
            ended = (left := end - time.monotonic()) <= 0  # what there is by then is told all the same
            with store.changed:
                try:
                    news = store.events_since(version, request.resource, request.namespace)
                    if not news and not ended:
                        store.changed.wait(min(left, BOOKMARK_S))
                        news = store.events_since(version, request.resource, request.namespace)
                except Refused as refused:
                    yield {"type": "ERROR", "object": refused.status()}
                    return
                version = max(version, store.version)
            yield from filter(None, (self._selected(request, event) for event in news))
            if not news and request.query.get("allowWatchBookmarks") in ("1", "true"):
                yield {"type": "BOOKMARK", "object": {"kind": request.kind, "apiVersion": request.api_version,
                                                      "metadata": {"resourceVersion": str(version)}}}

    def _selected(self, request, event):
        """The event as one with the request's selectors sees it; None: not at all."""
        _, kind, _, obj, before = event
        selectors = request.query.get("labelSelector"), request.query.get("fieldSelector")
        is_in = kind != "DELETED" and matches(obj, *selectors)
        was_in = before is not None and matches(before, *selectors)
        if not is_in and not was_in:
            return None
        kind = "DELETED" if not is_in else "MODIFIED" if was_in else "ADDED"
        return {"type": kind, "object": obj}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that went away."""


def make_server(config, exchange=Exchange):
    """One that has yet to serve; its scheduler runs."""
    store = Store(config["journal"])
    exchange.api = Api(store, Access(store, config["tokens"]))
    exchange.audit = open(config["audit_log"], "a", encoding="utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(config["certificate"], config["key"])
    server = Server(("127.0.0.1", config["port"]), exchange)
    # The handshake is the connection's thread's.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=bind_pods, args=(store,), daemon=True).start()
    return server


if __name__ == "__main__":
    make_server(json.loads(pathlib.Path(sys.argv[1]).read_text())).serve_forever()
