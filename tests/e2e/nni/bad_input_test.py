#!/usr/bin/env python3
"""What users get wrong: each time a message of NNI's that says what to do."""
import environment

environment.run_inside(__file__)

import http.server
import json
import os
import socket
import subprocess
import threading
import unittest
import unittest.mock

from espalier_nni import registration
from nni.experiment import Experiment
from nni.experiment.config import ExperimentConfig
from nni_harness import NniTest
from ports import two_free_ports


class OtherService(http.server.BaseHTTPRequestHandler):
    """Answers every GET with `answer`."""
    answer = (404, "nothing here")

    def do_GET(self):  # pylint: disable=invalid-name
        status, text = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class ConfigurationTest(NniTest):
    """Refused before NNI's manager is started."""

    def setUp(self):
        super().setUp()
        self.http = "127.0.0.1:1"

    def message(self, **fields):
        with self.assertRaises(Exception) as caught:
            self.experiment(**fields).config.json()
        return str(caught.exception)

    def test_values_out_of_range(self):
        for field, value, words in [
                ("service_address", "127.0.0.1:7078", ["service_address", "'127.0.0.1:7078'", "http://127.0.0.1:7078"]),
                ("service_address", "http://pool:x", ["service_address", "http://pool:x"]),
                ("poll_interval", 0.01, ["poll_interval", "0.01", "from 0.05 to 60 seconds"]),
                ("min_slots", 0, ["min_slots", "0", "from 1 to"]),
                ("slots_per_gpu", 0, ["slots_per_gpu", "--slots-per-gpu"]),
                ("priority", 0, ["priority", "0.001"]),
                ("stop_grace", -1, ["stop_grace", "-1"]),
                ("token_file", "/no/such/token", ["token_file", "/no/such/token", "can be read"]),
                ("tls_ca", "/no/such/ca", ["tls_ca", "/no/such/ca"]),
                ("environment", {"A B": "x"}, ["environment", "'A B'"]),
                ("environment", {"A": [1]}, ["environment.A", "a string or a number"]),
                ("promise_assessor", "yes", ["promise_assessor", "yes"]),
                ("min_slots", "two", ["min_slots", "two"])]:
            message = self.message(**{field: value})
            for word in words:
                self.assertIn(word, message)
        self.assertIn("at least min_slots, 3", self.message(min_slots=3, max_slots=2))
        self.assertIn("not both", self.message(token="x", token_file=__file__))

    def test_options_of_the_assessor_reach_the_service_as_they_are(self):
        options = {"min_steps": 10, "best_k": 2}
        told = self.experiment(promise_assessor=options).config.json()["trainingService"]
        self.assertEqual(told["promiseAssessor"], options)

    def test_an_unknown_field(self):
        with self.assertRaises(AttributeError) as caught:
            ExperimentConfig(training_service={"platform": "espalier_nni", "maxSlot": 3})
        self.assertIn("EspalierConfig does not have field(s) maxslot", str(caught.exception))

    def test_a_list_of_platforms(self):
        experiment = self.experiment()
        experiment.config.training_service = Experiment(["espalier_nni", "local"]).config.training_service
        with self.assertRaisesRegex(ValueError, "cannot share an experiment with other platforms. Give one platform"):
            experiment.config.json()

    def test_a_registration_that_leads_elsewhere(self):
        services = registration.read()
        self.addCleanup(registration.write, services)
        registration.write({**services, "espalier_nni": {"nodeModulePath": "/old/place.js", "nodeClassName": "X"}})
        self.assertIn("/old/place.js", self.message())
        self.assertIn("`espalier-nni register` again", self.message())

    def test_the_token_is_not_where_nni_shows_it(self):
        service = self.experiment(token="secret").config.json()["trainingService"]
        self.assertNotIn("token", service)
        with open(service["tokenFile"], encoding="utf-8") as file:
            self.assertEqual(file.read(), "secret")
        self.assertEqual(os.stat(service["tokenFile"]).st_mode & 0o777, 0o600)
        with unittest.mock.patch.dict(os.environ, {"ESPALIER_TOKEN_FILE": __file__}):
            self.assertEqual(self.experiment().config.json()["trainingService"]["tokenFile"], os.path.abspath(__file__))


class ManagerTest(NniTest):
    """In NNI's own list of errors, where its web page shows them."""

    def error_of(self, **fields):
        """The one message of an experiment that cannot run."""
        experiment = self.start_experiment(self.experiment(**fields))
        errors = self.wait_error(experiment)
        self.assertEqual(len(errors), 1, errors)
        return errors[0]

    def test_nobody_at_the_address(self):
        self.http = self.unanswered_address()
        message = self.error_of()
        self.assertIn(f"No Espalier service answers at http://{self.http}", message)
        self.assertIn("tuner serve --http", message)

    def test_another_program_or_another_release_at_the_address(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherService)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.http = f"127.0.0.1:{server.server_address[1]}"
        about = {"name": "espalier", "version": "9.9", "slots": 1, "nodes": 1}
        for answer, words in [
                ((404, "nothing here"), ["has no interface for NNI", "Check serviceAddress"]),
                ((200, json.dumps({**about, "protocol": 2})), ["Espalier 9.9", "the package is the older one", "update it"]),
                ((200, json.dumps({**about, "protocol": 0})), ["Espalier 9.9", "the service is the older one", "update it"])]:
            OtherService.answer = answer
            message = self.error_of()
            for word in words:
                self.assertIn(word, message)

    def test_tokens(self):
        token = self.write("token", "right\n", 0o600)
        with unittest.mock.patch.dict(os.environ, {"ESPALIER_TOKEN_FILE": token}):
            self.serve(self.dir / "espalier.db", options=("--token-file", token))
        about = subprocess.run(["espalier-nni", "check", "--service", f"http://{self.http}", "--token-file", token], text=True,
                               check=True, stdout=subprocess.PIPE).stdout
        self.assertIn("0 slots on 0 nodes", about)
        self.assertIn("nothing is wrong", about)
        wrong = self.write("wrong", "wrong\n", 0o600)
        message = self.error_of(token_file=wrong)
        self.assertIn("wants its token", message)
        self.assertIn(wrong, message)
        self.assertIn("none was given: set tokenFile", self.error_of())

    def test_more_than_the_pool_has(self):
        self.pool(2)
        message = self.error_of(trial_gpu_number=3)
        self.assertIn("a trial needs 3 GPUs", message)
        self.assertIn("lower trialGpuNumber", message)
        message = self.error_of(min_slots=5)
        self.assertIn("5", message)
        self.assertIn("2 slots", message)

    def test_an_empty_code_directory_and_a_taken_second_port_do_no_harm(self):
        self.pool(2)
        (self.dir / "empty").mkdir()
        experiment = self.experiment("adl", trial_code_directory=str(self.dir / "empty"))
        port = two_free_ports()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port + 1))
            taken.listen()
            with unittest.mock.patch("nni_harness.two_free_ports", return_value=port):
                self.start_experiment(experiment)
            self.wait_done(experiment)
        self.assertEqual(self.states(experiment), ["SUCCEEDED", "SUCCEEDED"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
