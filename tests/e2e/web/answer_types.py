"""What docs/openapi.json says of answers, as types of TypeScript. Any number of a kind that JSON does not have (NaN, an infinity) is null
there, which the schemas allow wherever there is a number, and so null is left out of numbers. Of what the schemas say no more
than that it is an object, anything may be."""
import json

INDENT = "  "


class Types:
    def __init__(self, openapi):
        self.schemas = json.loads(openapi.read_text(encoding="utf-8"))["components"]["schemas"]
        self.needed, self.written = [], {}

    def of(self, names):
        """Declarations of these, and of what they are made of."""
        self.needed = list(names)
        while self.needed:
            name = self.needed.pop()
            if name not in self.written:
                self.written[name] = None
                self.written[name] = f"export type {name} = {self._type(self.schemas[name])};\n"
        return "".join(self.written.values())

    def _type(self, schema, level=0):
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            self.needed.append(name)
            return name
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return " | ".join(self._type(one, level) for one in schema[key])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null" or "number" not in kinds]
        return " | ".join(self._of_kind(kind, schema, level) for kind in kinds) or "unknown"

    def _of_kind(self, kind, schema, level):
        if kind == "array":
            return f"({self._type(schema.get('items', {}), level)})[]"
        if kind == "object" and not {"properties", "additionalProperties"} & schema.keys():
            return "any"
        if kind == "object":
            return self._object(schema, level)
        return "number" if kind == "integer" else kind

    def _object(self, schema, level):
        required, inner = schema.get("required", []), INDENT * (level + 1)
        lines = [f"{inner}{json.dumps(name)}{'' if name in required else '?'}: {self._type(one, level + 1)};"
                 for name, one in schema.get("properties", {}).items()]
        others = schema.get("additionalProperties", True)
        if others is not False and not lines:
            lines.append(f"{inner}[name: string]: {self._type(others, level + 1) if isinstance(others, dict) else 'unknown'};")
        return "\n".join(["{", *lines, INDENT * level + "}"])
