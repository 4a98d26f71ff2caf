"""The HTTP interface is what docs/openapi.json says of it, both ways, and what docs/http.md shows works."""
import concurrent.futures
import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import unittest

from harness import ROOT, TunerTest, wait_for
from json_schema import Schemas

OPENAPI = json.loads((ROOT / "docs/openapi.json").read_text())
SCHEMAS = Schemas(OPENAPI)
METHODS = ("get", "post", "delete")
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def operations():
    """All whose answers end: those that go on are tests/server/http's."""
    for path, item in OPENAPI["paths"].items():
        for method in METHODS:
            ends = "text/event-stream" not in item.get(method, {}).get("responses", {}).get("200", {}).get("content", {})
            if method in item and ends:
                yield method, path, item[method], item.get("parameters", [])


def resolved(entry):
    return SCHEMAS.find(entry["$ref"]) if "$ref" in entry else entry


class HttpTest(TunerTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve(self.dir / "studies.db")
        self.connection = http.client.HTTPConnection(self.http, timeout=60)

    def tearDown(self):
        self.connection.close()
        super().tearDown()

    def send(self, method, path, body=None, headers={}):
        """Status, headers and text of the reply."""
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        self.connection.request(method.upper(), path, text, headers)
        reply = self.connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()

    def call(self, method, path, body=None, code=200, headers={}):
        status, _, text = self.send(method, path, body, headers)
        if code is not None:
            self.assertEqual(status, code, f"{method} {path} {body}: {text}")
        return json.loads(text)

    def create(self, name="study", **keys):
        spec = {"name": name, "ask_and_tell": True, "search_space": SPACE, "sampler": "random", **keys}
        return self.call("POST", "/api/studies", spec, 201)

    def ask(self, study="study", **body):
        return self.call("POST", f"/api/studies/{study}/ask", body)

    def enqueue(self):
        """A trial that the pool is to run."""
        self.call("POST", "/api/studies?exist_ok=1", {"name": "queue", "sampler": "queue", "command": ["true"],
                                                      "directory": str(self.dir)}, None)
        return self.call("POST", "/api/studies/queue/enqueue", {"parameters": {"x": 1}})

    def tell(self, trial, code=200, **body):
        return self.call("POST", f"/api/trials/{trial['trial_id']}/tell", body, code)


class OpenApi(HttpTest):
    def check(self, method, path, operation, body=None, target=None, headers={}, expected=None):
        """Sends the request; the reply must be one that the operation lists, by its schema."""
        status, reply_headers, text = self.send(method, target or path, body, headers)
        where = f"{method} {target or path} {body}: {status} {text[:300]}"
        self.assertIn(str(status), operation["responses"], where)
        if expected is not None:
            self.assertIn(status, expected, where)
        [(kind, content)] = resolved(operation["responses"][str(status)])["content"].items()
        self.assertTrue(reply_headers["Content-Type"].startswith(kind), where)
        value = json.loads(text) if kind == "application/json" else text
        try:
            SCHEMAS.check(value, content["schema"])
        except AssertionError as problem:
            self.fail(f"{where}\n{problem}")
        return status, value

    def target(self, path, study="study", trial=None):
        """A path whose names are those of things that are there."""
        if "{trial_id}" in path:
            trial = trial or (self.enqueue() if path.endswith(("/cancel", "/pin")) else self.ask())["trial_id"]
        query = "?what=importance" if path.endswith("/analysis") else ""
        names = {"study": study, "trial_id": trial, "node": "absent", "simulation_id": 10**12,
                 "page": "studies/1", "file": "absent",
                 "study_id": self.study_id(study) if "{study_id}" in path else None}
        return re.sub(r"{(\w+)}", lambda name: str(names[name[1]]), path) + query

    def study_id(self, name):
        return {s["name"]: s["id"] for s in self.call("GET", "/api/studies")["studies"]}.get(name, 10**12)

    def test_the_service_shows_the_file(self):
        self.assertEqual(self.call("GET", "/api/openapi.json"), OPENAPI)

    def test_every_operation_answers_as_described(self):
        self.create()
        self.tell(self.ask(), state="complete", value=0.5)
        # What deletes the study comes last.
        for method, path, operation, _ in sorted(operations(), key=lambda o: (o[0] == "delete", "{study}" in o[1])):
            with self.subTest(f"{method} {path}"):
                content = operation.get("requestBody", {}).get("content", {}).get("application/json")
                body = content and content["example"]
                if content:
                    SCHEMAS.check(body, content["schema"])
                # No node is there: slots are waited for, and a trial of a client prints where the client is, and has its
                # state there. No policy gives it slots.
                others = {"AcquireSlots": (202,), "GetTrialOutput": (409,), "CloneTrial": (409,), "DrainNode": (404,),
                          "StartSimulation": (409,), "GetSimulation": (404,), "pageFile": (404,)}
                self.check(method, path, operation, body, self.target(path),
                           expected=others.get(operation["operationId"], (200, 201)))
                self.call("POST", "/api/studies/study/resume", {}) if method != "delete" else None

    def test_replies_with_much_in_them_are_as_described(self):
        self.create(directions=["minimize", "maximize"])
        trial = self.ask()
        self.call("POST", f"/api/trials/{trial['trial_id']}/report", {"value": "nan"})
        self.call("POST", f"/api/trials/{trial['trial_id']}/attributes", {"user": {"a": [1, None]}, "system": {"b": {}}})
        self.tell(trial, state="complete", values=["inf", -1])
        self.ask()
        program = self.write("program.sh", "#!/bin/sh\nexec sleep 60\n", 0o755)
        self.call("POST", "/api/studies", {"name": "pool", "command": [program], "search_space": SPACE, "trials": 2,
                                           "directory": str(self.dir)}, 201)
        for method, path, operation, _ in operations():
            if method == "get":
                for study in ("study", "pool"):
                    with self.subTest(f"{method} {path} {study}"):
                        self.check(method, path, operation, target=self.target(path, study, trial["trial_id"]))

    def test_what_is_not_there_is_404(self):
        for method, path, operation, parameters in operations():
            if not parameters or operation["operationId"] == "pageBelow":  # which is the same whatever it is to show
                continue
            with self.subTest(f"{method} {path}"):
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
                self.check(method, path, operation, body, self.target(path, "absent", 10**12), expected=(404,))

    def test_bad_bodies_are_400_and_name_what_is_bad(self):
        self.create()
        for method, path, operation, _ in operations():
            if "requestBody" not in operation:
                continue
            schema = resolved(operation["requestBody"]["content"]["application/json"]["schema"])
            target = self.target(path)
            with self.subTest(f"{method} {path}"):
                for text in ("{", "[]", "7", '"text"', '{"name": "a", "name": "a"}', "\xff".encode("latin-1")):
                    self.check(method, path, operation, text, target, expected=(400,))
                example = operation["requestBody"]["content"]["application/json"]["example"]
                _, reply = self.check(method, path, operation, {**example, "no_such_key": 1}, target, expected=(400,))
                self.assertIn("no_such_key", reply["error"])
                for name in schema["properties"]:
                    object_wanted = name in ("parameters", "user", "system", "user_attributes", "search_space",
                                             "options")
                    odd = 7 if object_wanted else {"odd": []}
                    _, reply = self.check(method, path, operation, {**example, name: odd}, target, expected=(400,))
                    self.assertIn(name, reply["error"])

    def test_bad_ids_in_paths_are_400(self):
        for method, path, operation, _ in operations():
            if "{trial_id}" in path:
                for text in ("x", "-1", "1x", str(2**64)):
                    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
                    self.check(method, path, operation, body, path.replace("{trial_id}", text), expected=(400,))

    def test_other_methods_are_405(self):
        for path, item in OPENAPI["paths"].items():
            target = self.target(path, "study", 1)
            for method in ("get", "post", "delete", "put", "patch"):
                if method in item:
                    continue
                status, headers, text = self.send(method, target, "{}")
                self.assertEqual(status, 405, f"{method} {path}")
                self.assertEqual(headers["Allow"].lower().split(", "), [m for m in METHODS if m in item])
                SCHEMAS.check(json.loads(text), OPENAPI["components"]["schemas"]["Error"])

    def test_large_bodies_are_413(self):
        self.create()
        for method, path, operation, _ in operations():
            if "requestBody" in operation:
                self.check(method, path, operation, " " * (1 << 20) + "{}", self.target(path, "study", 1), expected=(413,))

    def test_every_code_of_an_error_and_every_schema_is_used(self):
        text = json.dumps(OPENAPI["paths"]) + json.dumps(OPENAPI["components"])
        for kind in ("schemas", "parameters", "responses"):
            for name in OPENAPI["components"][kind]:
                if (kind, name) != ("responses", "405"):  # of paths, not of operations
                    self.assertIn(f'"#/components/{kind}/{name}"', text)


class Token(HttpTest):
    def serve(self, database, **keys):
        self.token = {"Authorization": "Bearer secret"}
        path = self.write("token", "secret", 0o600)
        return super().serve(database, options=("--token-file", path))

    def wait_service(self, process):
        wait_for(lambda: self.healthy(process), "the service to answer")

    def healthy(self, process):
        self.assertIsNone(process.poll(), self.output(process))
        try:
            with contextlib.closing(http.client.HTTPConnection(self.http, timeout=60)) as connection:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
        except OSError:
            return False

    def test_is_needed_but_where_the_file_says_otherwise(self):
        for method, path, operation, _ in operations():
            target = path.replace("{study}", "study").replace("{trial_id}", "1")
            open_to_all = operation.get("security") == []
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                status, _, text = self.send(method, target, "{}" if method == "post" else None, headers)
                self.assertEqual(status == 401, not open_to_all, f"{method} {path}: {status} {text}")
            status, _, text = self.send(method, target, "{}" if method == "post" else None, self.token)
            self.assertNotEqual(status, 401, f"{method} {path}: {text}")


class OtherSites(HttpTest):
    def test_their_pages_may_not_call_us(self):
        spec = {"name": "theirs", "command": ["/bin/true"], "search_space": SPACE, "trials": 1}
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"},
                        {"Host": "evil.example:80", "Origin": "http://evil.example:80"}):
            reply = self.call("POST", "/api/studies", spec, 403, {"Content-Type": "text/plain", **headers})
            self.assertEqual(reply["code"], "PERMISSION_DENIED")
        self.assertEqual(self.call("GET", "/api/studies")["studies"], [])
        for headers in ({"Host": "localhost:1"}, {"Host": "[::1]:8080"}, {"Origin": f"http://{self.http}"}):
            self.call("GET", "/api/studies", headers=headers)

    def test_who_shows_a_token_may_call_the_service_by_any_name(self):
        self.run_tuner("token", "create", "--service", self.grpc, "--role", "view", "--name", "ada", "--out", self.dir / "token")
        token = (self.dir / "token").read_text().strip()
        named = {"Host": "head-node:7078"}
        self.assertIn("without a token", self.call("GET", "/api/studies", None, 403, named)["error"])
        self.call("GET", "/api/studies", headers=named | {"Authorization": f"Bearer {token}"})
        self.call("GET", "/api/studies", None, 401, named | {"Authorization": "Bearer wrong"})


class Metrics(HttpTest):
    def test_each_is_named_in_the_docs(self):
        page = (ROOT / "docs/http.md").read_text()
        self.agent(1, "oak", ("--price-per-hour", 2))
        wait_for(lambda: "espalier_price_per_hour" in self.send("GET", "/metrics")[2], "the node to be there")
        names = re.findall(r"^# HELP (\S+)", self.send("GET", "/metrics")[2], re.MULTILINE)
        self.assertGreater(len(names), 12)
        for name in names:
            self.assertIn(f"`{name}`", page)


class AskAndTell(HttpTest):
    def test_numbers_that_json_does_not_know(self):
        self.create()
        trial = self.ask()
        for step, (sent, got) in enumerate([("nan", "NaN"), ("NaN", "NaN"), ("inf", "Infinity"), ("-Infinity", "-Infinity"),
                                            (1e308, 1e308), (5e-324, 5e-324)]):
            self.call("POST", f"/api/trials/{trial['trial_id']}/report", {"step": step, "value": sent})
            values = self.call("GET", f"/api/trials/{trial['trial_id']}")["intermediate_values"]
            self.assertEqual(values[step]["value"], got)
        self.tell(trial, 400, state="complete", value="nan")
        self.tell(trial, state="complete", value="-inf")
        self.assertEqual(self.call("GET", f"/api/trials/{trial['trial_id']}")["values"], ["-Infinity"])
        self.assertIn("no trial with a value", self.call("GET", "/api/studies/study/best", code=404)["error"])
        self.tell(self.ask(), state="complete", value=1e308)
        self.assertEqual(self.call("GET", "/api/studies/study/best")["values"], [1e308])

    def test_the_same_end_twice_and_another(self):
        self.create()
        trial = self.ask()
        first = self.tell(trial, state="complete", value=1)
        self.assertEqual(self.tell(trial, state="COMPLETE", values=[1.0]), first)
        self.assertEqual(self.tell(trial, 409, state="complete", value=2)["code"], "FAILED_PRECONDITION")
        self.assertEqual(self.tell(trial, 409, state="fail")["code"], "FAILED_PRECONDITION")

    def test_a_key_gives_the_same_trial_after_kill_and_restart(self):
        spec = {"name": "study", "ask_and_tell": True, "search_space": SPACE}
        key = {"Idempotency-Key": "create"}
        study = self.call("POST", "/api/studies", spec, 201, key)
        self.assertEqual(self.call("POST", "/api/studies", spec, 200, key)["id"], study["id"])
        self.call("POST", "/api/studies", spec, 409)
        self.call("POST", "/api/studies?exist_ok=1", spec, 200)
        self.call("POST", "/api/studies?exist_ok=1", {**spec, "seed": 1}, 409)
        first = self.call("POST", "/api/studies/study/ask", headers={"Idempotency-Key": "a"})
        quoted = self.call("POST", "/api/studies/study/ask", headers={"Idempotency-Key": '"a"'})
        self.assertEqual(quoted, first, "as a structured field")
        self.service.send_signal(signal.SIGKILL)
        self.service.wait()
        self.connection.close()
        self.service = self.serve(self.dir / "studies.db", grpc=self.grpc, http=self.http)
        again = self.call("POST", "/api/studies/study/ask", headers={"Idempotency-Key": "a"})
        self.assertEqual(again, first)
        self.assertNotEqual(self.ask()["trial_id"], first["trial_id"])
        self.call("POST", "/api/studies/study/ask", code=400, headers={"Idempotency-Key": "k" * 129})

    def test_many_who_ask_with_one_key_get_one_trial(self):
        self.create()

        def ask(_):
            with contextlib.closing(http.client.HTTPConnection(self.http, timeout=60)) as connection:
                connection.request("POST", "/api/studies/study/ask", headers={"Idempotency-Key": "same"})
                return json.loads(connection.getresponse().read())["trial_id"]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            self.assertEqual(len(set(pool.map(ask, range(64)))), 1)

    def test_limits_have_codes(self):
        self.create(trials=2, max_concurrent_trials=1)
        trial = self.ask()
        self.assertEqual(self.call("POST", "/api/studies/study/ask", code=429)["code"], "RESOURCE_EXHAUSTED")
        self.tell(trial, state="fail")
        self.tell(self.ask(), state="complete", value=1)
        self.assertIn("all 2 trials", self.call("POST", "/api/studies/study/ask", code=409)["error"])
        self.assertEqual(self.call("GET", "/api/studies/study")["study"]["state"], "STUDY_COMPLETE")

    def test_names_with_any_characters(self):
        name = "a/b c?ü%2F"
        self.create(name)
        from urllib.parse import quote
        self.assertEqual(self.ask(quote(name, safe=""))["study"], name)

    def test_the_command_line_sees_what_was_drawn(self):
        self.create()
        trial = self.ask(parameters={"x": 0.125})
        self.tell(trial, state="complete", value=3)
        self.assertIn("0.125", self.run_tuner("show", "study", "--service", self.grpc).stdout)

    def test_the_command_line_prints_the_same_json(self):
        self.create(trials=1)
        self.tell(self.ask(), state="complete", value=3)
        where = ("--service", self.grpc, "--json")
        shown = {path: json.loads(self.run_tuner(*arguments, *where).stdout) for path, arguments in (
            ("/api/studies", ("ls",)), ("/api/studies/study", ("show", "study")), ("/api/pool", ("pool",)))}
        for path, value in shown.items():
            self.assertEqual(value, self.call("GET", path), path)
        self.assertEqual(json.loads(self.run_tuner("show", "study", "--trial", 0, *where).stdout),
                         shown["/api/studies/study"]["trials"][0])


class Connections(HttpTest):
    def test_one_connection_serves_many_calls(self):
        self.create()
        self.call("GET", "/api/pool")
        own = self.connection.sock.getsockname()
        for _ in range(50):
            self.tell(self.ask(), state="complete", value=1)
        self.assertEqual(self.connection.sock.getsockname(), own)

    def test_idle_connections_hold_nobody_up(self):
        idle = [socket.create_connection(self.http.split(":")) for _ in range(300)]
        try:
            self.assertEqual(self.send("GET", "/healthz")[0], 200)
            self.assertEqual(self.call("GET", "/api/pool")["slots"], 0)
        finally:
            for connection in idle:
                connection.close()

    def test_a_body_may_come_late_and_requests_together(self):
        self.create()
        host, port = self.http.split(":")
        with socket.create_connection((host, int(port))) as connection:
            one = b"POST /api/studies/study/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
            last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            connection.sendall(one + one[:40])
            connection.sendall(one[40:-1])
            connection.sendall(one[-1:] + last)
            replies = b""
            while chunk := connection.recv(65536):
                replies += chunk
        self.assertEqual(replies.count(b"HTTP/1.1 200 OK"), 3, replies)
        self.assertIn(b'"number":1,', replies)

    def test_what_is_no_request_is_refused_and_its_connection_closed(self):
        host, port = self.http.split(":")
        for text in (b"nonsense\r\n\r\n", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
                     b"POST /api/studies HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(text)
                replies = b""
                while chunk := connection.recv(65536):
                    replies += chunk
            self.assertTrue(replies.startswith(b"HTTP/1.1 4"), replies)
        long_path = "/" + "a" * 8000
        self.assertEqual(self.send("GET", long_path)[0], 404)


class Guide(HttpTest):
    """Every block of docs/http.md, one after the other, against a live service."""

    def test_examples_run(self):
        text = (ROOT / "docs/http.md").read_text().replace("127.0.0.1:8080", self.http)
        text = text.replace('"127.0.0.1", 8080', ", ".join((json.dumps(self.http.split(":")[0]), self.http.split(":")[1])))
        blocks = re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 8)
        for kind, code in blocks:
            command = [sys.executable, "-c", code] if kind == "python" else ["sh", "-ec", code]
            done = subprocess.run(command, text=True, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, f"{code}\n{done.stdout}\n{done.stderr}")
            self.assertTrue(done.stdout, code)
        left = {study["name"]: study["trials_by_state"] for study in self.call("GET", "/api/studies")["studies"]}
        self.assertEqual(left.pop("mine"), {"PRUNED": 1})
        self.assertEqual(list(left.values()), [{"RUNNING": 1}])


if __name__ == "__main__":
    unittest.main()
