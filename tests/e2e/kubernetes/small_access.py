"""Who may do what on a small API server: tokens, and roles that are bound to their users."""
import pathlib
import secrets
import time

from small_store import Refused


class Access:
    """Who shows which token, and what roles let them do."""

    def __init__(self, store, tokens):
        self.store = store
        self.fixed = {}
        for line in pathlib.Path(tokens).read_text().splitlines():
            token, user, _, groups = line.split(",", 3)
            self.fixed[token] = (user, groups.strip('"').split(","))

    def user_of(self, header):
        token = (header or "").removeprefix("Bearer ")
        if token in self.fixed:
            return self.fixed[token]
        issued = self.store.objects.get(("issued", "", token))
        if not issued or issued["until"] < time.time() or not self._bound_is_there(issued):
            raise Refused(401, "Unauthorized")
        namespace, name = issued["account"]
        return f"system:serviceaccount:{namespace}:{name}", [f"system:serviceaccounts:{namespace}"]

    def _bound_is_there(self, issued):
        namespace, name = issued["account"]
        if ("serviceaccounts", namespace, name) not in self.store.objects:
            return False
        return not issued["bound"] or self._secret_uid(namespace, issued["bound"]) == issued["bound_uid"]

    def _secret_uid(self, namespace, name):
        secret = self.store.objects.get(("secrets", namespace, name))
        return secret["metadata"]["uid"] if secret else None

    def issue(self, namespace, name, body):
        """The answer to a TokenRequest."""
        spec = body.get("spec") or {}
        token = secrets.token_hex(16)
        until = time.time() + spec.get("expirationSeconds", 3600)
        bound = (spec.get("boundObjectRef") or {}).get("name", "")
        self.store.write(("issued", "", token), {"metadata": {}, "account": [namespace, name], "until": until, "bound": bound,
                                                 "bound_uid": self._secret_uid(namespace, bound)})
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
        return body | {"kind": "TokenRequest", "status": {"token": token, "expirationTimestamp": expires}}

    def allows(self, user, groups, request):
        if "system:masters" in groups:
            return True
        for kind in ("rolebindings", "clusterrolebindings"):
            for binding in self.store.all_of(kind, request.namespace if kind == "rolebindings" else ""):
                if any(self._is(subject, user) for subject in binding.get("subjects") or ()) and \
                        any(request.covered_by(rule) for rule in self._rules(binding)):
                    return True
        return False

    def _is(self, subject, user):
        if subject["kind"] == "ServiceAccount":
            return user == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
        return subject["kind"] == "User" and subject["name"] == user

    def _rules(self, binding):
        kind = {"Role": "roles", "ClusterRole": "clusterroles"}[binding["roleRef"]["kind"]]
        place = binding["metadata"].get("namespace", "") if kind == "roles" else ""
        role = self.store.objects.get((kind, place, binding["roleRef"]["name"])) or {}
        return role.get("rules") or ()
