"""espalier.Client against real services: what it can do, whom it believes, and what it says where that fails."""
import csv
import hashlib
import http.server
import io
import json
import math
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import TUNER, TunerTest, wait_for  # noqa: E402

import espalier  # noqa: E402
import numpy  # noqa: E402
from espalier import space  # noqa: E402

SPACE = {"x": space.uniform(0, 1), "step": space.choice("a", "b")}
TRIAL = """#!/bin/sh
tuner tell --step 1 --value 0.5
tuner tell --step 2 --value "$ESPALIER_PARAM_X"
echo told
"""
WAITING = """#!/bin/sh
tuner tell --step 1 --value 0.5
exec sleep 600
"""


class ServiceTest(TunerTest):
    def setUp(self):
        super().setUp()
        for name in ("ESPALIER_HTTP", "ESPALIER_TOKEN_FILE", "ESPALIER_TLS_CA", "ESPALIER_SERVICE"):
            os.environ.pop(name, None)

    def connect(self, *where, **keys):
        client = espalier.Client(*where, **keys)
        self.addCleanup(client.close)
        return client

    def spec(self, program, **keys):
        return {"name": "mine", "command": [self.write("trial.sh", program, 0o755)], "search_space": SPACE, "seed": 1,
                "sampler": "random", "metric": {"name": "loss", "direction": "minimize"}, "trials": 3,
                "stop_grace_s": 1, **keys}


class Pool(ServiceTest):
    """A service with an agent of two slots."""

    def setUp(self):
        super().setUp()
        self.serve(self.dir / "pool.db")
        self.agent(2)
        self.client = self.connect(self.http)
        wait_for(lambda: self.client.pool()["slots"] == 2, "the agent to join")

    def test_a_study_from_submit_to_delete(self):
        made = self.client.submit(self.spec(TRIAL))
        self.assertEqual((made["name"], made["state"]), ("mine", "STUDY_RUNNING"))
        seen = list(self.client.watch("mine", every_s=0.05))
        self.assertEqual(seen[-1]["study"]["state"], "STUDY_COMPLETE")
        self.assertEqual([trial["state"] for trial in seen[-1]["trials"]], ["TRIAL_COMPLETE"] * 3)
        self.assertTrue(all(a != b for a, b in zip(seen, seen[1:])))
        trials = self.client.trials("mine")
        for trial in trials:
            self.assertIsInstance(trial["parameters"]["x"], float)
            self.assertIn(trial["parameters"]["step"], ("a", "b"))
            self.assertAlmostEqual(trial["value"], trial["parameters"]["x"], places=9)
        best = min(trials, key=lambda trial: trial["value"])
        self.assertEqual(self.client.study("mine")["best_trial"], best["number"])
        self.assertEqual(self.client.best("mine")["parameters"], best["parameters"])
        self.assertRegex(self.client.logs("mine", 0), "told\n$")
        self.assertEqual(self.client.logs("mine", 0, lines=1), "told\n")
        self.check_export()
        with self.assertRaisesRegex(espalier.ServiceError, "mine") as caught:
            self.client.submit(self.spec(TRIAL))
        self.assertIn(caught.exception.code, ("ALREADY_EXISTS", "FAILED_PRECONDITION"))
        self.assertEqual(self.client.submit(self.spec(TRIAL), exist_ok=True)["id"], made["id"])
        self.assertEqual(self.client.delete("mine")["name"], "mine")
        self.assertEqual(self.client.studies(), [])

    def check_export(self):
        """Rows are those of the command line, cell by cell."""
        told = self.run_tuner("export", "mine", "--service", self.grpc).stdout
        lines = list(csv.DictReader(io.StringIO(told)))
        rows = self.client.export("mine")
        self.assertEqual(len(rows), 6)
        self.assertEqual([list(row) for row in rows], [list(line) for line in lines])
        for row, line in zip(rows, lines):
            for name, value in row.items():
                if isinstance(value, float):
                    self.assertAlmostEqual(float(line[name]), value, places=2, msg=name)
                else:
                    self.assertEqual(line[name], "" if value is None else str(value), name)
        self.assertEqual([row["trial"] for row in self.client.export("mine", steps=False)], [0, 1, 2])

    def test_who_watches_waits_for_a_service_that_is_started_again(self):
        service = self.processes[0]
        self.client.submit({"name": "asked", "ask_and_tell": True, "trials": 1, "sampler": "random", "search_space": SPACE})
        trial = self.client.ask("asked")
        seen, watcher = [], self.connect(self.http)

        def watch():
            for details in watcher.watch("asked", every_s=0.05):
                seen.append(details["study"]["state"])

        watching = threading.Thread(target=watch)
        watching.start()
        self.addCleanup(watching.join)
        wait_for(lambda: seen, "the study to be seen")
        service.kill()
        service.wait()
        again = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.dir / "pool.db")
        self.wait_service(again)
        self.connect(self.http).tell(trial["trial_id"], 0.5)
        watching.join()
        self.assertEqual((seen[0], seen[-1]), ("STUDY_RUNNING", "STUDY_COMPLETE"))

    def test_pin_cancel_stop_and_resume(self):
        path = self.write("file.json", json.dumps({**self.spec(WAITING, trials=2), "search_space": "space.json",
                                                   "directory": "."}))
        self.write("space.json", SPACE)
        self.client.submit(path)
        self.assertEqual(self.client.study("mine")["directory"], str(self.dir))
        wait_for(lambda: [t["step"] for t in self.client.trials("mine", values=False)] == [1, 1], "both to report")
        self.assertEqual(self.client.pin("mine", 1, 1)["pinned_slots"], 1)
        self.assertEqual(self.client.unpin("mine", 1)["pinned_slots"], 0)
        with self.assertRaisesRegex(espalier.ServiceError, "slots must be 0 .* got 9") as caught:
            self.client.pin("mine", 1, 9)
        self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")
        self.assertEqual(self.client.cancel("mine", 1, pruned=True, reason="too slow")["state"], "TRIAL_PRUNED")
        self.assertEqual(self.client.trial("mine", 1)["reason"], "too slow")
        self.assertEqual(self.client.stop("mine")["state"], "STUDY_STOPPED")
        self.assertEqual(self.client.wait("mine")["state"], "STUDY_STOPPED")
        again = self.client.resume("mine", trials=7, time_limit_s=900)
        self.assertEqual((again["state"], again["max_trials"], again["time_limit_s"]), ("STUDY_RUNNING", 7, 900))
        with self.assertRaises(espalier.ServiceError):
            self.client.delete("mine")  # it runs

    def test_the_pool_is_drained_and_divided_anew(self):
        self.assertEqual(self.client.set_policy("pollux")["policy"], "pollux")
        self.assertTrue(self.client.drain("node")["draining"])
        self.assertTrue(self.client.pool()["nodes"][0]["draining"])
        self.assertFalse(self.client.drain("node", undo=True)["draining"])
        with self.assertRaisesRegex(espalier.NotFoundError, '"elsewhere"'):
            self.client.drain("elsewhere")
        with self.assertRaisesRegex(espalier.ServiceError, "no_such"):
            self.client.set_policy("no_such")

    def test_trials_that_a_program_runs_itself(self):
        self.client.submit({"name": "asked", "ask_and_tell": True, "search_space": SPACE, "sampler": "random"})
        self.client.enqueue("asked", {"x": numpy.float32(0.25)}, {"why": "a guess"})
        trial = self.client.ask("asked")
        self.assertEqual((trial["parameters"]["x"], trial["user_attributes"]), (0.25, {"why": "a guess"}))
        self.assertEqual(self.client.report(trial["trial_id"], numpy.int64(1), numpy.float32(math.nan))["prune"], False)
        self.assertFalse(self.client.should_prune(trial["trial_id"])["prune"])
        self.client.attributes(trial["trial_id"], host="oak")
        told = self.client.acquire_slots(trial["trial_id"], 1, node="node")
        self.assertTrue(told["slots"] or told["waits_for"])
        self.client.release_slots(trial["trial_id"])
        self.client.tell(trial["trial_id"], 0.5)
        record = self.client.record(trial["trial_id"])
        self.assertEqual((record["state"], record["values"]), ("TRIAL_COMPLETE", [0.5]))
        self.assertTrue(math.isnan(record["intermediate_values"][0]["value"]))
        other = self.client.ask("asked", {"step": "b"})
        self.assertEqual(other["parameters"]["step"], "b")
        self.client.tell(other["trial_id"], state="fail")

    def test_operations_are_called_by_their_names(self):
        self.client.call("CreateStudy", name="by name", ask_and_tell=True, search_space=SPACE)
        trial = self.client.call("Ask", study="by name", parameters={"x": 0.25})
        self.assertEqual(self.client.call("GetTrial", trial_id=trial["trial_id"])["parameters"]["x"], 0.25)
        self.client.call("Tell", trial_id=trial["trial_id"], state="complete", value=0.5)
        shown = self.client.call("GetStudy", study="by name", active=True, values=False)
        self.assertEqual([each["number"] for each in shown["trials"]], [0], "the best, which has ended")
        self.assertEqual(self.client.call("DrainNode", node="node", undo=True)["draining"], False)
        for wrong, told in ((lambda: self.client.call("DrainNodes", node="node"), "did you mean 'DrainNode'"),
                            (lambda: self.client.call("DrainNode"), "'node' is needed")):
            with self.assertRaisesRegex(espalier.UsageError, told):
                wrong()
        with self.assertRaisesRegex(espalier.ServiceError, '"wihtin_s"'):
            self.client.call("DrainNode", node="node", wihtin_s=3)

    def test_what_is_not_there_is_named(self):
        for call in (lambda: self.client.study("absent"), lambda: self.client.trials("absent"),
                     lambda: self.client.stop("absent"), lambda: self.client.delete("absent"),
                     lambda: self.client.pin("absent", 0, 1), lambda: next(self.client.watch("absent"))):
            with self.assertRaisesRegex(espalier.NotFoundError, '"absent"'):
                call()
        self.client.submit(self.spec(WAITING))
        with self.assertRaisesRegex(espalier.NotFoundError, "trial 99"):
            self.client.logs("mine", 99)
        with self.assertRaisesRegex(espalier.ServiceError, "samplr.*sampler"):
            self.client.submit(self.spec(TRIAL, name="other", samplr="tpe"))

    def test_threads_share_a_client(self):
        names, threads = [], []
        for _ in range(8):
            threads.append(threading.Thread(target=lambda: names.append(len(self.client.pool()["nodes"]))))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual(names, [1] * 8)

    def test_it_is_found_by_the_environment(self):
        with mock.patch.dict(os.environ, ESPALIER_HTTP=f"http://{self.http}"), espalier.Client() as client:
            self.assertEqual(client.address, self.http)
            self.assertEqual(client.studies(), [])


class CutOff(http.server.ThreadingHTTPServer):
    """Reads requests, closes the connections of the first ones without an answer, and answers the others."""

    def __init__(self, times):
        super().__init__(("127.0.0.1", 0), AnswersLate)
        self.address = "{}:{}".format(*self.server_address)
        self.times, self.asked = times, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *error):
        self.shutdown()
        super().__exit__(*error)


class AnswersLate(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append({name.lower(): value for name, value in self.headers.items()})
        if len(self.server.asked) <= self.server.times:
            self.close_connection = True
            return
        text = b'{"studies": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Addresses(ServiceTest):
    def test_nobody_answers(self):
        address = self.unanswered_address()
        with self.assertRaisesRegex(espalier.UnreachableError, f"no tuner service answers at {address}.*refused"):
            self.connect(address).studies()

    def test_what_answers_is_no_service(self):
        self.serve(self.dir / "pool.db")
        with self.assertRaisesRegex(espalier.UnreachableError, "--http, not of --grpc"):
            self.connect(self.grpc).studies()

    def test_a_service_that_was_started_again_is_found_again(self):
        with socket.socket() as holder:  # the port is kept for the second service
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
            http = f"127.0.0.1:{holder.getsockname()[1]}"
            first = self.serve(self.dir / "pool.db", http=http)
            client = self.connect(http)
            self.assertEqual(client.studies(), [])
            first.terminate()
            self.finish(first)
            with self.assertRaises(espalier.UnreachableError):
                client.studies()
            self.serve(self.dir / "pool.db", http=http)
            self.assertEqual(client.studies(), [])

    def test_a_request_that_is_cut_off_is_sent_again_where_it_counts_once(self):
        with CutOff(2) as service, self.connect(service.address) as client:
            self.assertEqual(client.studies(), [])
            self.assertEqual(len(service.asked), 3)
        with CutOff(2) as service, self.connect(service.address) as client:
            client.submit({"name": "mine"})
            self.assertEqual(len(service.asked), 3)
            self.assertEqual(len({request["idempotency-key"] for request in service.asked}), 1)
        with CutOff(1) as service, self.connect(service.address) as client:
            with self.assertRaisesRegex(espalier.UnreachableError, "without response"):
                client.stop("mine")
            self.assertEqual(len(service.asked), 1, "somebody may have resumed it meanwhile")

    def test_the_environments_token_is_for_a_run_that_needs_one(self):
        with mock.patch.dict(os.environ, ESPALIER_TOKEN_FILE=str(self.dir / "absent.token")):
            for told in ({"needs_token": True}, {}):  # the second by an earlier release
                self.write("service.json", {"http": "127.0.0.1:1", **told})
                with self.subTest(told), self.assertRaisesRegex(espalier.UsageError, "absent.token"):
                    self.connect(directory=self.dir)
            self.write("service.json", {"http": "127.0.0.1:1", "needs_token": False})
            self.assertIn("127.0.0.1:1", self.connect(directory=self.dir).address)

    def test_bad_arguments(self):
        for address in ("oak", "oak:port", "ftp://oak:1", "oak:1/path", ":7078", 7078):
            with self.subTest(address), self.assertRaisesRegex(espalier.UsageError, "HOST:PORT"):
                self.connect(address)
        with self.assertRaisesRegex(espalier.UsageError, "no tuner runs in"):
            self.connect(directory=self.dir)
        with self.assertRaisesRegex(espalier.UsageError, "leave one"):
            self.connect("oak:1", directory=self.dir)
        with self.assertRaisesRegex(espalier.UsageError, "absent.token"):
            self.connect(token_file=self.dir / "absent.token")
        with self.assertRaisesRegex(espalier.UsageError, "is empty"):
            self.connect(token_file=self.write("empty.token", "\n"))
        client = self.connect("127.0.0.1:1")
        for study, wrong in ((7, "must be a dict"), (self.dir / "absent.json", "absent.json"),
                             (self.write("list.json", "[]"), "one JSON object"),
                             (self.write("double.json", '{"name": "a", "name": "b"}'), '"name" appears twice'),
                             (self.write("bad.json", "{"), "bad.json")):
            with self.subTest(study), self.assertRaisesRegex(espalier.UsageError, wrong):
                client.submit(study)
        with self.assertRaisesRegex(espalier.UsageError, "JSON has no ndarray"):
            client.enqueue("mine", {"x": numpy.ones(2)})


class Strangers(ServiceTest):
    """A service that other machines may reach speaks TLS, and wants a token of everybody but its own user."""

    def setUp(self):
        super().setUp()
        # With a word, the kernel's word lets nobody in: as from another machine.
        database, word = self.dir / "pool.db", self.write("word", "a word of ours\n", 0o600)
        process = self.start("serve", "--grpc", "0.0.0.0:0", "--http", "0.0.0.0:0", "--db", database,
                             "--token-file", word)
        self.grpc = self.told_address(process, "gRPC").replace("0.0.0.0", "127.0.0.1")
        self.http = self.told_address(process, "HTTP").replace("0.0.0.0", "127.0.0.1")
        self.folder = pathlib.Path(f"{database}.credentials")
        self.administer = self.folder / "administer.token"
        wait_for(lambda: subprocess.run([TUNER, "ls", "--service", self.grpc, "--token-file", self.administer],
                                        capture_output=True).returncode == 0, "the service to answer")

    def token(self, role):
        made = self.run_tuner("token", "create", "--role", role, "--name", role, "--service", self.grpc, "--token-file",
                              self.administer).stdout
        return self.write(f"{role}.token", made, 0o600)

    def test_the_token_names_the_certificate(self):
        view = self.token("view")
        client = self.connect(self.http, token_file=view)
        self.assertEqual(client.studies(), [])
        with self.assertRaisesRegex(espalier.AccessError, "has the role view") as caught:
            client.submit({"name": "s", "ask_and_tell": True})
        self.assertEqual(caught.exception.code, "PERMISSION_DENIED")
        with mock.patch.dict(os.environ, ESPALIER_TOKEN_FILE=self.token("submit"), ESPALIER_HTTP=self.http):
            self.assertEqual(self.connect().submit({"name": "s", "ask_and_tell": True})["name"], "s")
        self.run_tuner("token", "rm", "view", "--service", self.grpc, "--token-file", self.administer)
        with self.assertRaisesRegex(espalier.AccessError, "was ended"):
            self.connect(self.http, token_file=view).studies()

    def test_another_certificate_is_not_talked_to(self):
        words = self.administer.read_text().strip().split(".")
        other = self.write("other.token", ".".join([*words[:3], "0" * 64]))
        with self.assertRaisesRegex(espalier.UnreachableError, "is for 0000.*Nothing was sent"):
            self.connect(self.http, token_file=other).studies()

    def test_wrong_tokens_are_refused(self):
        words = self.administer.read_text().strip().split(".")
        wrong = self.write("wrong.token", ".".join([words[0], words[1], "f" * 64, words[3]]))
        with self.assertRaises(espalier.AccessError) as caught:
            self.connect(self.http, token_file=wrong).studies()
        self.assertEqual(caught.exception.code, "UNAUTHENTICATED")

    def test_trusted_certificates_instead(self):
        certificate = self.folder / "certificate.pem"
        short = self.write("short.token", ".".join(self.administer.read_text().strip().split(".")[:3]))
        with mock.patch.dict(os.environ, ESPALIER_TLS_CA=str(certificate)):
            self.assertEqual(self.connect(self.http, token_file=short).studies(), [])
        with self.assertRaisesRegex(espalier.UnreachableError, "not known by the certificates"):
            self.connect(f"https://{self.http}", token_file=short).studies()
        with self.assertRaisesRegex(espalier.UsageError, "absent.pem"):
            self.connect(self.http, token_file=short, tls_ca=self.dir / "absent.pem").studies()

    def test_a_service_in_the_clear_is_not_the_one_of_the_token(self):
        self.serve(self.dir / "other.db")
        with self.assertRaisesRegex(espalier.UnreachableError, "the token holds the hash"):
            self.connect(self.http, token_file=self.administer).studies()

    def test_an_ended_certificate_is_refused_with_what_to_do(self):
        key, request, ended = (self.dir / name for name in ("ended.key", "request.pem", "ended.pem"))
        for words in (f"req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {key} -out {request} "
                      "-subj /CN=tuner.espalier", f"x509 -req -in {request} -signkey {key} -days -1 -out {ended}"):
            subprocess.run(["openssl", *words.split()], check=True, capture_output=True)
        pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(ended.read_text())).hexdigest()
        token = self.write("ended.token", f"esp1.00000000.{'1' * 64}.{pin}\n")
        self.start("serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--db", self.dir / "ended.db",
                   "--tls-cert", ended, "--tls-key", key)
        address = self.told_address(self.processes[-1], "HTTP")
        with self.assertRaisesRegex(espalier.UnreachableError, "not good now .*expired.*restart the service"):
            self.connect(address, token_file=token).studies()


if __name__ == "__main__":
    unittest.main()
