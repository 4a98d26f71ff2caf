"""What a small API server knows: objects with versions, and what became of them. small_api.py serves them."""
import copy
import json
import pathlib
import re
import threading
import time

REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
           409: "Conflict", 410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests",
           500: "InternalError", 504: "Timeout"}
HISTORY = 1000  # events for watches


class Refused(Exception):
    def __init__(self, code, message, reason=None):
        super().__init__(message)
        self.code, self.reason = code, reason or REASONS[code]

    def status(self):
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(self),
                "reason": self.reason, "code": self.code}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def merge(old, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def matches(obj, labels, fields):
    """Whether an object is selected: labels by = != in notin and existence, fields by = and != of any path."""
    have = obj["metadata"].get("labels") or {}
    for term in re.findall(r"[^,(]+(?:\([^)]*\))?", labels or ""):
        key, relation, value = re.fullmatch(r"\s*(!?[\w./-]+)\s*(==|=|!=|in|notin|)\s*(.*?)\s*", term).groups()
        values = [word.strip() for word in value.strip("()").split(",")]
        if not relation:
            fits = (key.lstrip("!") in have) != key.startswith("!")
        else:
            fits = (have.get(key) in values) == (relation in ("=", "==", "in"))
        if not fits:
            return False
    for term in filter(None, (fields or "").split(",")):
        path, equal, value = re.fullmatch(r"([\w.]+)(!?==?)(.*)", term).groups()
        found = obj
        for word in path.split("."):
            found = (found or {}).get(word)
        if ((found or "") == value) == equal.startswith("!"):
            return False
    return True


class Store:
    """All objects, and their history. Callers hold `changed`, which is told of each change."""

    def __init__(self, journal):
        self.changed = threading.Condition(threading.RLock())
        self.objects, self.version = {}, 0
        self.history, self.oldest = [], 0
        path = pathlib.Path(journal)
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                self.version, kind, key, obj = json.loads(line)
            except ValueError:  # the last one, of a server that was killed
                break
            self.objects[tuple(key)] = obj
            if kind == "DELETED":
                del self.objects[tuple(key)]
        self.oldest = self.version
        self.journal = open(path, "a", encoding="utf-8")

    def write(self, key, obj, kind=None):
        """Adds, changes or (DELETED) removes."""
        before = self.objects.get(key)
        kind = kind or ("MODIFIED" if before else "ADDED")
        self.version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = obj
        if kind == "DELETED":
            del self.objects[key]
        self.journal.write(json.dumps([self.version, kind, key, obj]) + "\n")
        self.journal.flush()
        self.history.append((self.version, kind, key, obj, before))
        if len(self.history) > HISTORY:
            self.oldest = self.history.pop(0)[0]
        self.changed.notify_all()
        return obj

    def all_of(self, resource, namespace=None):
        return [obj for (kind, place, _), obj in sorted(self.objects.items())
                if kind == resource and namespace in (None, "", place)]

    def events_since(self, version, resource, namespace):
        if version < self.oldest:
            raise Refused(410, f"too old resource version: {version} ({self.oldest})")
        return [event for event in self.history
                if event[0] > version and event[2][0] == resource and namespace in ("", event[2][1])]
