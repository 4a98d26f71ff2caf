"""What the client reads from replies: numbers that JSON does not have, and texts that only look like them."""
import json
import math
import pathlib
import unittest

from espalier import _http

SCHEMAS = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/openapi.json").read_text())
TEXT, FIGURE, OF_USERS, FIGURES_BY_NAME = "a text", "a figure", "of users", "figures by name"


def resolved(schema):
    while "$ref" in schema:
        schema = SCHEMAS["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def kinds(schema):
    """What a field of that schema may hold."""
    if schema.get("$ref", "").endswith("/Number") or schema.get("type") == "number":
        return {FIGURE}
    schema = resolved(schema)
    found = set().union(*(kinds(option) for option in schema.get("anyOf", ())))
    if schema.get("type") == "array":
        found |= kinds(schema["items"])
    elif schema.get("type") == "string" or any(isinstance(value, str) for value in schema.get("enum", ())):
        found.add(TEXT)
    further = schema.get("additionalProperties")
    if further is True or isinstance(further, dict) and further.get("type") != "integer":
        found.add(FIGURES_BY_NAME if further is not True and kinds(further) == {FIGURE} else OF_USERS)
    return found


def fields(part, found):
    """{field: what it may hold}, of all schemas below."""
    if isinstance(part, dict):
        for name, schema in (part.get("properties") or {}).items():
            found.setdefault(name, set()).update(kinds(schema))
    for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        fields(below, found)
    return found


class Replies(unittest.TestCase):
    def test_fields_are_read_as_the_interface_describes_them(self):
        # What pages in a browser are shown is read by these alone.
        read = {name: schema for name, schema in SCHEMAS["components"]["schemas"].items() if not name.startswith(("View", "Simulat"))}
        found = fields(read, {})
        self.assertIn("noise_scale", found)

        def named(kind):
            return {name for name, held in found.items() if kind in held}
        self.assertEqual(named(TEXT), set(_http._TEXTS))
        self.assertEqual(named(OF_USERS) | {"parameters"}, set(_http._OF_USERS))
        self.assertEqual(named(FIGURES_BY_NAME), set(_http._FIGURES_BY_NAME))

    def test_a_figure_of_any_name_is_a_float(self):
        trial = {"a_new_figure": "NaN", "other_values": ["Infinity", 1], "values": [{"value": "-Infinity", "step": 3}],
                 "extra": {"reason": "NaN", "b": 2}, "best_value": None}
        read = _http.read_json(json.dumps(trial))
        self.assertTrue(math.isnan(read["a_new_figure"]) and math.isnan(read["extra"]["reason"]))
        self.assertEqual(read["other_values"], [math.inf, 1])
        self.assertEqual(read["values"], [{"value": -math.inf, "step": 3}])
        self.assertIsNone(read["best_value"])

    def test_a_text_stays_one(self):
        told = {"study": {"name": "NaN", "warnings": ["Infinity"]}, "user_attributes": {"loss": "NaN"},
                "parameters": [{"name": "x", "json": "\"NaN\""}, {"name": "y", "json": "NaN"}]}
        read = _http.read_json(json.dumps(told))
        self.assertEqual(read["study"], told["study"])
        self.assertEqual(read["user_attributes"], {"loss": "NaN"})
        self.assertEqual(read["parameters"]["x"], "NaN")
        self.assertTrue(math.isnan(read["parameters"]["y"]))
        self.assertEqual(_http.read_json('{"parameters": {"kind": "NaN", "lr": "Infinity"}}'),
                         {"parameters": {"kind": "NaN", "lr": "Infinity"}})


if __name__ == "__main__":
    unittest.main()
