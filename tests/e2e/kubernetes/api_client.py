"""Speaks with a Kubernetes API server, as one user."""
import http.client
import json
import ssl
import urllib.parse

WAIT_S = 30
PATCH = "application/merge-patch+json"


def path_of(resource, name="", subresource="", namespace="espalier", **query):
    """The path of an object, or of all: resource is "pods", "leases.coordination.k8s.io/v1", "nodes" (of no namespace)."""
    plural, _, group = resource.partition(".")
    words = ["apis", group] if group else ["api", "v1"]
    if namespace and plural not in ("nodes", "namespaces", "clusterroles", "clusterrolebindings"):
        words += ["namespaces", namespace]
    words += [word for word in (plural, name, subresource) if word]
    return "/" + "/".join(words) + ("?" + urllib.parse.urlencode(query) if query else "")


class ApiClient:
    """One object a thread. A call that finds no server raises OSError."""

    def __init__(self, address, ca, token):
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.context = ssl.create_default_context(cafile=ca)
        self.token = token

    def send(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=WAIT_S)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind, "Accept": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            return connection, connection.getresponse()
        except http.client.HTTPException as broken:
            connection.close()
            raise OSError(str(broken)) from broken
        except OSError:
            connection.close()
            raise

    def call(self, method, path, body=None, kind="application/json"):
        """(status code, object)"""
        connection, answer = self.send(method, path, body, kind)
        try:
            text = answer.read()
        except http.client.HTTPException as broken:
            raise OSError(str(broken)) from broken
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode(errors="replace")

    def do(self, method, path, body=None, kind="application/json"):
        """The object; an AssertionError where the server refuses."""
        code, answer = self.call(method, path, body, kind)
        assert code < 300, f"{method} {path}: {code} {answer}"
        return answer

    def get(self, path):
        return self.do("GET", path)

    def create(self, path, body):
        return self.do("POST", path, body)

    def patch(self, path, body):
        return self.do("PATCH", path, body, PATCH)

    def watch(self, path):
        """(type, object) of each event until the server ends the stream."""
        connection, answer = self.send("GET", path)
        try:
            assert answer.status == 200, answer.read()
            while line := answer.readline():
                event = json.loads(line)
                yield event["type"], event["object"]
        except (http.client.HTTPException, ValueError) as broken:
            raise OSError(str(broken)) from broken
        finally:
            connection.close()
