"""`tuner connect`: programs that can send neither a token nor TLS use a service of another host, as the user of a token."""
import environment

environment.run_inside(__file__)

import hosts

hosts.run_inside(__file__)

import json
import pathlib
import signal
import subprocess
import sys
import unittest

from harness import wait_for
from hosts import HTTP_PORT, PORT, HostsTest

DASHBOARD_PORT = 7079

# A stock client, as Optuna's documentation shows it.
STUDY = """
import optuna, sys
optuna.logging.set_verbosity(optuna.logging.WARNING)
storage = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=int(sys.argv[1]))
study = optuna.create_study(study_name=sys.argv[2], storage=storage)
def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    trial.report(x, 1)
    return x * x
study.optimize(objective, n_trials=5)
print(len(optuna.load_study(study_name=sys.argv[2], storage=storage).trials))
"""
LIST = """
import optuna, sys
storage = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=int(sys.argv[1]))
print(optuna.get_all_study_names(storage))
"""


class Connect(HostsTest):
    def setUp(self):
        super().setUp()
        self.one, self.two = self.make_network(2)
        self.dashboard = f"{self.one.ip4}:{DASHBOARD_PORT}"
        self.service = self.serve_tls_on(self.one, options=("--dashboard", self.dashboard))

    def new_token(self, role):
        made = self.client("token", "create", "--role", role, "--name", role).stdout
        return self.write(f"{role}.token", made, 0o600)

    def connect(self, token, *services, options=()):
        process = self.start("connect", *services, "--token-file", token, *options, **self.on(self.two))
        wait_for(lambda: process.poll() is not None or "until Ctrl-C" in self.output(process), "the port")
        return process

    def refusal(self, *arguments):
        """What is said of a connection that does not come about."""
        process = self.start("connect", *arguments, **self.on(self.two))
        process.wait()
        self.assertNotEqual(process.returncode, 0, self.output(process))
        return self.output(process)

    def python(self, code, *arguments):
        return subprocess.run([*self.two.prefix(), sys.executable, "-c", code, *map(str, arguments)], capture_output=True,
                              text=True, cwd=self.dir)

    def curl(self, path, *options, **keys):
        """Status, and the answer."""
        done = subprocess.run([*self.two.prefix(), *keys.pop("before", ()), "curl", "-sS", "--noproxy", "*", "-w",
                               "\n%{http_code}", *options, f"http://127.0.0.1:{keys.pop('port', HTTP_PORT)}{path}"],
                              capture_output=True, text=True)
        answer, _, status = done.stdout.rpartition("\n")
        return int(status), answer

    def test_optunas_stock_client_makes_a_study(self):
        connected = self.connect(self.new_token("submit"), self.grpc)
        self.assertIn(f'GrpcStorageProxy(host="127.0.0.1", port={PORT})', self.output(connected))
        done = self.python(STUDY, PORT, "stock")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "5"), done.stderr)
        self.assertEqual([t["state"] for t in self.exported("stock")["trials"]], ["TRIAL_COMPLETE"] * 5)
        # One that was not there for a while is dialled again.
        self.service.terminate()
        self.finish(self.service)
        self.service = self.serve_tls_on(self.one)
        done = self.python(STUDY, PORT, "again")
        self.assertEqual(done.returncode, 0, done.stderr)
        connected.send_signal(signal.SIGINT)
        self.finish(connected)

    def test_a_token_to_view_does_no_more_than_that(self):
        self.connect(self.new_token("view"), self.grpc, self.http)
        done = self.python(STUDY, PORT, "mine")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has the role view", done.stderr)
        done = self.python(LIST, PORT)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "[]"), done.stderr)
        self.assertEqual(self.curl("/api/studies")[0], 200)
        status, answer = self.curl("/api/studies", "-d", "{}", "-H", "Content-Type: application/json")
        self.assertEqual(status, 403, answer)
        self.assertIn("has the role view", answer)

    def test_browsers_and_curl(self):
        connected = self.connect(self.new_token("submit"), self.http, options=("--listen", "127.0.0.1:7078"))
        self.assertIn("http://127.0.0.1:7078", self.output(connected))
        study = self.study(["/bin/true"])
        status, answer = self.curl("/api/studies", "-d", f"@{study}", "-H", "Content-Type: application/json",
                                   "-H", "Transfer-Encoding: chunked")
        self.assertEqual(status, 201, answer)
        # Two requests of one connection.
        done = self.two.run("curl", "-sS", "--noproxy", "*", f"http://127.0.0.1:{HTTP_PORT}/api/studies",
                            f"http://127.0.0.1:{HTTP_PORT}/api/studies")
        self.assertEqual(done.count('"e2e"'), 2, done)
        status, answer = self.curl("/api/studies", "-H", "Host: evil.example")
        self.assertEqual(status, 403)
        self.assertIn("this port is called localhost", answer)
        status, answer = self.curl("/api/studies", "-H", "Origin: http://evil.example")
        self.assertEqual(status, 403)
        self.assertIn("other sites' pages", answer)
        if hosts.can_be_nobody():
            self.assertEqual(self.curl("/healthz", before=hosts.AS_NOBODY)[0], 0)
            wait_for(lambda: f"of user {hosts.NOBODY} was closed" in self.output(connected), "the log")
        self.service.terminate()
        self.finish(self.service)
        status, answer = self.curl("/healthz")
        self.assertEqual(status, 502)
        self.assertIn("no tuner service answers", answer)

    def test_the_dashboard(self):
        self.connect(self.new_token("submit"), self.dashboard)
        origin = ("-H", f"Origin: http://127.0.0.1:{DASHBOARD_PORT}")  # as its own page's
        body = json.dumps({"study_name": "by hand", "directions": ["minimize"]})
        status, answer = self.curl("/api/studies", "-d", body, "-H", "Content-Type: application/json", *origin,
                                   port=DASHBOARD_PORT)
        self.assertEqual(status, 201, answer)
        status, answer = self.curl("/api/studies", port=DASHBOARD_PORT)
        self.assertEqual(status, 200, answer)
        self.assertIn("by hand", answer)

    def test_what_is_wrong_is_said_at_the_start(self):
        token = self.new_token("submit")
        scheme, name, secret, pin = pathlib.Path(token).read_text().strip().split(".")
        wrong = self.write("wrong.token", f"{scheme}.{name}.{secret}.{'0' * 64}\n", 0o600)
        for address in (self.grpc, self.http):
            said = self.refusal(address, "--token-file", wrong)
            self.assertIn("shows a certificate with hash " + pin[:16], said)
            self.assertNotIn(secret, said)
        said = self.refusal(f"{self.one.ip4}:9", "--token-file", token)
        self.assertEqual(said.count("no tuner service answers"), 1, said)
        self.assertIn(f"{self.one.ip4}:9", said)
        self.assertIn("a token is needed", self.refusal(self.grpc))
        said = self.refusal(self.grpc, "--token-file", token, "--listen", "0.0.0.0:7077")
        self.assertIn("for this machine alone", said)
        self.assertIn("one HOST:PORT", self.refusal(self.grpc, self.http, "--token-file", token, "--listen", "127.0.0.1:1"))
        self.client("token", "rm", "submit")
        for address in (self.grpc, self.http):
            self.assertIn("tuner token rm", self.refusal(address, "--token-file", token))


if __name__ == "__main__":
    unittest.main()
