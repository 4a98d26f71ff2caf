"""The part of JSON Schema that docs/openapi.json uses. A key that is not known here is an error, so that none is
passed over in silence."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
SILENT = {"description", "example"}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Schemas:
    def __init__(self, document):
        self.document = document

    def find(self, ref):
        found = self.document
        for name in ref.removeprefix("#/").split("/"):
            found = found[name]
        return found

    def check(self, value, schema, place="$"):
        """AssertionError says where the value is not what the schema says."""
        for key, rule in schema.items():
            if key not in SILENT:
                getattr(self, "check_" + key.replace("$", ""))(value, rule, schema, place)

    def check_ref(self, value, ref, _, place):
        self.check(value, self.find(ref), place)

    def check_type(self, value, names, _, place):
        names = [names] if isinstance(names, str) else names
        assert any(is_type(value, name) for name in names), f"{place}: {value!r} is not of type {names}"

    def check_enum(self, value, values, _, place):
        assert value in values, f"{place}: {value!r} is none of {values}"

    def check_pattern(self, value, pattern, _, place):
        assert not isinstance(value, str) or re.search(pattern, value), f"{place}: {value!r} is not {pattern}"

    def check_minimum(self, value, least, _, place):
        assert not is_type(value, "number") or value >= least, f"{place}: {value!r} is less than {least}"

    def check_maximum(self, value, most, _, place):
        assert not is_type(value, "number") or value <= most, f"{place}: {value!r} is more than {most}"

    def check_minLength(self, value, least, _, place):
        assert not isinstance(value, str) or len(value) >= least, f"{place}: {value!r} is too short"

    def check_maxLength(self, value, most, _, place):
        assert not isinstance(value, str) or len(value) <= most, f"{place}: {value!r} is too long"

    def check_anyOf(self, value, schemas, _, place):
        problems = []
        for schema in schemas:
            try:
                return self.check(value, schema, place)
            except AssertionError as problem:
                problems.append(str(problem))
        raise AssertionError(" and ".join(problems))

    def check_items(self, value, schema, _, place):
        for i, item in enumerate(value if isinstance(value, list) else []):
            self.check(item, schema, f"{place}[{i}]")

    def check_required(self, value, names, _, place):
        missing = [name for name in names if isinstance(value, dict) and name not in value]
        assert not missing, f"{place}: {missing} missing"

    def check_properties(self, value, properties, _, place):
        for name, schema in properties.items():
            if isinstance(value, dict) and name in value:
                self.check(value[name], schema, f"{place}.{name}")

    def check_additionalProperties(self, value, allowed, schema, place):
        others = set(value) - set(schema.get("properties", ())) if isinstance(value, dict) else set()
        for name in others:
            assert allowed is not False, f"{place}: {name!r} is not in the schema"
            if isinstance(allowed, dict):
                self.check(value[name], allowed, f"{place}.{name}")
