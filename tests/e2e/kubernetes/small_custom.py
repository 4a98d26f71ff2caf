"""Custom resources of a small API server: kinds that CustomResourceDefinitions make, their schemas, and their subresource
status. small_api.py serves them."""
import copy

from small_store import Refused

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
NAMES = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
ALWAYS = ("apiVersion", "kind", "metadata")


class CustomKind:
    """A kind of one version of a definition."""

    def __init__(self, definition, version):
        spec = definition["spec"]
        self.name, self.group, self.namespaced = spec["names"]["kind"], spec["group"], spec["scope"] == "Namespaced"
        self.schema = version["schema"]["openAPIV3Schema"]
        self.has_status = "status" in (version.get("subresources") or {})

    def admit(self, name, body):
        """The body without what the schema does not know; refused where the schema says so."""
        if not body.get("kind"):
            raise Refused(400, f"{self.name} cannot be handled as a {self.name}: Object 'Kind' is missing in '{body}'")
        body = copy.deepcopy(body)
        wrong = list(check(self.schema, {key: value for key, value in body.items() if key not in ALWAYS}, ""))
        if wrong:
            raise Refused(422, f'{self.name}.{self.group} "{name}" is invalid: {"; ".join(wrong)}')
        prune(self.schema, body, ALWAYS)
        return body

    def made(self, body):
        """A body as it is created."""
        if self.has_status:
            body.pop("status", None)
        body["metadata"]["generation"] = 1
        return body

    def changed(self, old, new, subresource):
        """`new` in the place of `old`."""
        if subresource == "status":
            return dict(old, status=new.get("status"))
        new = dict(new)
        if self.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        def content(obj):
            return {key: value for key, value in obj.items() if key not in (*ALWAYS, "status")}
        new["metadata"] = dict(new["metadata"], generation=old["metadata"]["generation"] + (content(old) != content(new)))
        return new


def find(store, resource, group, version):
    """The custom kind of that resource; None: there is none."""
    definition = store.objects.get(("customresourcedefinitions", "", f"{resource}.{group}"))
    for one in definition["spec"]["versions"] if definition else ():
        if one["name"] == version and one["served"]:
            return CustomKind(definition, one)
    return None


def check(schema, value, path):
    """What is wrong with a value, a text each."""
    wanted = schema.get("type")
    fits = not wanted or isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
    if not fits:
        have = NAMES[type(value)]
        yield f'{path}: Invalid value: "{have}": {path} in body must be of type {wanted}: "{have}"'
        return
    if "minimum" in schema and value < schema["minimum"]:
        yield f'{path}: Invalid value: {value}: {path} in body should be greater than or equal to {schema["minimum"]}'
    if "enum" in schema and value not in schema["enum"]:
        known = ", ".join(f'"{word}"' for word in schema["enum"])
        yield f'{path}: Unsupported value: "{value}": supported values: {known}'
    if isinstance(value, dict):
        below = f"{path}." if path else ""
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{below}{name}: Required value"
        for name, part in (schema.get("properties") or {}).items():
            if name in value:
                yield from check(part, value[name], below + name)
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from check(schema.get("items", {}), item, f"{path}[{number}]")


def prune(schema, value, kept=()):
    """Drops what the schema does not know."""
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        for name in list(value):
            if name in known:
                prune(known[name], value[name])
            elif name not in kept and not schema.get("x-kubernetes-preserve-unknown-fields"):
                del value[name]
    for item in value if isinstance(value, list) else ():
        prune(schema.get("items", {}), item)
