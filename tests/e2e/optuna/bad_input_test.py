"""Odd, hostile and idle clients of Optuna's frontend; others are served meanwhile."""
import environment

environment.run_inside(__file__)

import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import threading
import unittest
import urllib.request

import grpc
import optuna
from optuna.storages import GrpcStorageProxy
from optuna.storages._grpc.auto_generated import api_pb2 as p, api_pb2_grpc

from harness import PATIENCE_S, TunerTest, wait_for

FLOAT = optuna.distributions.distribution_to_json(optuna.distributions.FloatDistribution(0, 1))
optuna.logging.set_verbosity(optuna.logging.ERROR)
CHOICE = optuna.distributions.distribution_to_json(optuna.distributions.CategoricalDistribution(["a", "b"]))
Code = grpc.StatusCode
MEBIBYTE = 1 << 20


def resident(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024


def open_files(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


class BadInput(TunerTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve(self.dir / "x.db", options=["--dashboard", "127.0.0.1:0"])
        self.channel = grpc.insecure_channel(self.grpc, options=[("grpc.max_send_message_length", -1)])
        self.addCleanup(self.channel.close)
        self.stub = api_pb2_grpc.StorageServiceStub(self.channel)
        self.study = self.stub.CreateNewStudy(p.CreateNewStudyRequest(directions=[0], study_name="s")).study_id

    def trial(self):
        return self.stub.CreateNewTrial(p.CreateNewTrialRequest(study_id=self.study, template_trial_is_none=True)).trial_id

    def refused(self, code, call, request, *words):
        with self.assertRaises(grpc.RpcError) as caught:
            call(request, timeout=PATIENCE_S)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        for word in words:
            self.assertIn(word, caught.exception.details())

    def test_reference_statuses(self):
        s, study = self.stub, self.study
        self.refused(Code.ALREADY_EXISTS, s.CreateNewStudy, p.CreateNewStudyRequest(directions=[0], study_name="s"), "s")
        s.CreateNewStudy(p.CreateNewStudyRequest(directions=[0], study_name=""))
        self.refused(Code.ALREADY_EXISTS, s.CreateNewStudy, p.CreateNewStudyRequest(directions=[0], study_name=""))
        s.CreateNewStudy(p.CreateNewStudyRequest(study_name="no directions"))
        s.CreateNewStudy(p.CreateNewStudyRequest(directions=[0], study_name="n" * 600))
        self.refused(Code.UNKNOWN, s.CreateNewStudy, p.CreateNewStudyRequest(directions=[7], study_name="x"), "7")
        none = 10**6
        for call, request in (
                (s.DeleteStudy, p.DeleteStudyRequest(study_id=none)),
                (s.GetTrials, p.GetTrialsRequest(study_id=none, trial_id_greater_than=-1)),
                (s.GetStudyUserAttributes, p.GetStudyUserAttributesRequest(study_id=none)),
                (s.GetStudySystemAttributes, p.GetStudySystemAttributesRequest(study_id=none)),
                (s.GetStudyDirections, p.GetStudyDirectionsRequest(study_id=none)),
                (s.GetStudyNameFromId, p.GetStudyNameFromIdRequest(study_id=none)),
                (s.GetStudyIdFromName, p.GetStudyIdFromNameRequest(study_name="none")),
                (s.SetStudyUserAttribute, p.SetStudyUserAttributeRequest(study_id=none, key="k", value="1")),
                (s.CreateNewTrial, p.CreateNewTrialRequest(study_id=none, template_trial_is_none=True)),
                (s.GetTrial, p.GetTrialRequest(trial_id=none)),
                (s.GetTrial, p.GetTrialRequest(trial_id=-1)),
                (s.SetTrialParameter, p.SetTrialParameterRequest(trial_id=none, param_name="x", distribution=FLOAT)),
                (s.SetTrialStateValues, p.SetTrialStateValuesRequest(trial_id=none, state=1)),
                (s.SetTrialIntermediateValue, p.SetTrialIntermediateValueRequest(trial_id=none, step=1)),
                (s.SetTrialUserAttribute, p.SetTrialUserAttributeRequest(trial_id=none, key="k", value="1")),
                (s.GetTrialIdFromStudyIdTrialNumber,
                 p.GetTrialIdFromStudyIdTrialNumberRequest(study_id=study, trial_number=99)),
                (s.GetTrialIdFromStudyIdTrialNumber,
                 p.GetTrialIdFromStudyIdTrialNumberRequest(study_id=study, trial_number=-1))):
            self.refused(Code.NOT_FOUND, call, request)

        trial = self.trial()

        def parameter(value, distribution, name="x"):
            return p.SetTrialParameterRequest(trial_id=trial, param_name=name, param_value_internal=value,
                                              distribution=distribution)
        s.SetTrialParameter(parameter(0.5, FLOAT))
        s.SetTrialParameter(parameter(77, FLOAT))
        self.refused(Code.INVALID_ARGUMENT, s.SetTrialParameter, parameter(1, CHOICE), "x", "CategoricalDistribution")
        for bad in ("{bad", "", "{}", "[1]", '{"name": "Other", "attributes": {}}',
                    '{"name": "FloatDistribution", "attributes": {"low": "a"}}'):
            self.refused(Code.UNKNOWN, s.SetTrialParameter, parameter(1, bad, "y"), "y")
        for bad in ("{bad", "", "nul", '"\\x"', "[1,]", "\x00"):
            self.refused(Code.UNKNOWN, s.SetTrialUserAttribute,
                         p.SetTrialUserAttributeRequest(trial_id=trial, key="the key", value=bad), "the key")
            self.refused(Code.UNKNOWN, s.SetStudySystemAttribute,
                         p.SetStudySystemAttributeRequest(study_id=study, key="the key", value=bad), "the key")
        self.refused(Code.UNKNOWN, s.SetTrialStateValues, p.SetTrialStateValuesRequest(trial_id=trial, state=9), "9")
        self.assertFalse(s.SetTrialStateValues(p.SetTrialStateValuesRequest(trial_id=trial, state=0)).trial_updated)
        self.assertTrue(s.SetTrialStateValues(p.SetTrialStateValuesRequest(trial_id=trial, state=4)).trial_updated)
        self.assertTrue(s.SetTrialStateValues(p.SetTrialStateValuesRequest(trial_id=trial, state=0)).trial_updated)
        s.SetTrialStateValues(p.SetTrialStateValuesRequest(trial_id=trial, state=1, values=[float("nan")]))
        for call, request in ((s.SetTrialParameter, parameter(1, CHOICE)),
                              (s.SetTrialSystemAttribute,
                               p.SetTrialSystemAttributeRequest(trial_id=trial, key="x", value="1")),
                              (s.SetTrialStateValues, p.SetTrialStateValuesRequest(trial_id=trial, state=0))):
            self.refused(Code.FAILED_PRECONDITION, call, request, "ended")
        for template in (p.Trial(state=9), p.Trial(datetime_start="yesterday"), p.Trial(params={"x": 1.0}),
                         p.Trial(params={"x": 1.0}, distributions={"x": "{"}), p.Trial(user_attributes={"k": "{"})):
            self.refused(Code.UNKNOWN, s.CreateNewTrial, p.CreateNewTrialRequest(study_id=study, template_trial=template))
        self.refused(Code.UNIMPLEMENTED, self.channel.unary_unary("/optuna.StorageService/Nope"), b"")
        self.assertEqual(len(s.GetTrials(p.GetTrialsRequest(study_id=study, trial_id_greater_than=-1)).trials), 1)

    def test_bytes_that_are_no_message(self):
        for method in ("CreateNewStudy", "SetTrialUserAttribute", "GetTrials", "GetTrial"):
            call = self.channel.unary_unary(f"/optuna.StorageService/{method}")
            for data in (b"\xff" * 100, b"\x08", b"\x12\xff\xff\xff\xff\x0f"):
                with self.assertRaises(grpc.RpcError):
                    call(data, timeout=PATIENCE_S)
        # Text that is no UTF-8: proto3 forbids it in strings.
        with self.assertRaises(grpc.RpcError):
            self.channel.unary_unary("/optuna.StorageService/CreateNewStudy")(b"\x12\x02\xff\xfe", timeout=PATIENCE_S)
        self.assertEqual(len(self.stub.GetAllStudies(p.GetAllStudiesRequest()).studies), 1)

    def test_large_requests_up_to_the_limit(self):
        trial = self.trial()

        def attribute(mebibytes):
            return p.SetTrialUserAttributeRequest(trial_id=trial, key="big", value=json.dumps("x" * (mebibytes * MEBIBYTE)))
        self.stub.SetTrialUserAttribute(attribute(5))
        self.stub.SetTrialUserAttribute(attribute(60))
        self.refused(Code.RESOURCE_EXHAUSTED, self.stub.SetTrialUserAttribute, attribute(65), "larger than max")
        self.assertLess(resident(self.service), 1500 * MEBIBYTE)
        optuna.load_study(study_name="s", storage=GrpcStorageProxy(host="127.0.0.1", port=int(self.grpc.split(":")[1])))

    def test_deep_json_and_many_ids(self):
        trial = self.trial()
        deep = {depth: "[" * depth + "]" * depth for depth in (64, 65, 100_000)}
        self.stub.SetTrialUserAttribute(p.SetTrialUserAttributeRequest(trial_id=trial, key="deep", value=deep[64]))
        for depth in (65, 100_000):
            self.refused(Code.UNKNOWN, self.stub.SetTrialUserAttribute,
                         p.SetTrialUserAttributeRequest(trial_id=trial, key="deep", value=deep[depth]), "deep", "64 levels")
            choices = f'{{"name": "CategoricalDistribution", "attributes": {{"choices": [{deep[depth]}]}}}}'
            self.refused(Code.UNKNOWN, self.stub.SetTrialParameter,
                         p.SetTrialParameterRequest(trial_id=trial, param_name="x", param_value_internal=0,
                                                    distribution=choices), "x", "64 levels")
        self.refused(Code.UNKNOWN, self.stub.SetTrialUserAttribute,
                     p.SetTrialUserAttributeRequest(trial_id=trial, key="deep", value=deep[64][:-1]))
        many = p.GetTrialsRequest(study_id=self.study, included_trial_ids=range(-10, 500_000), trial_id_greater_than=10**15)
        self.assertEqual([t.trial_id for t in self.stub.GetTrials(many).trials], [trial])

    def raw_connections(self, address, count, data=b""):
        host, port = address.rsplit(":", 1)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 60_000), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        connections = []
        self.addCleanup(lambda: [c.close() for c in connections])
        for _ in range(count):
            connections.append(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
            if data:
                connections[-1].sendall(data)
        return connections

    def works(self):
        """A trial, while the others stay as they are: who had to wait for them would wait for ever."""
        trial = self.stub.CreateNewTrial(p.CreateNewTrialRequest(study_id=self.study, template_trial_is_none=True),
                                         timeout=PATIENCE_S).trial_id
        self.stub.SetTrialIntermediateValue(p.SetTrialIntermediateValueRequest(trial_id=trial, step=1, intermediate_value=1),
                                            timeout=PATIENCE_S)
        self.stub.SetTrialStateValues(p.SetTrialStateValuesRequest(trial_id=trial, state=1, values=[1]), timeout=PATIENCE_S)

    def test_ten_thousand_idle_connections(self):
        before = resident(self.service)
        # They say what HTTP/2 begins with, and nothing more.
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
        connections = self.raw_connections(self.grpc, 10_000, preface)
        self.works()
        # The kernel takes more than the service has accepted, and lets newcomers in a full queue try again in seconds.
        wait_for(lambda: open_files(self.service) > len(connections), "all of them accepted")
        self.assertLess((resident(self.service) - before) / len(connections), 100 * 1024, "bytes each")
        # A new client still comes in.
        listed = subprocess.run([self.tuner(), "ls", "--service", self.grpc], capture_output=True, text=True)
        self.assertEqual(listed.returncode, 0, listed.stderr)

    def test_slow_clients_of_http_keep_nobody_waiting(self):
        for address in (self.http, self.dashboard()):
            self.raw_connections(address, 200)  # silent
            self.raw_connections(address, 100, b"POST /api/studies HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{")
            self.works()
            path = "/healthz" if address == self.http else "/api/meta"
            with urllib.request.urlopen(f"http://{address}{path}", timeout=PATIENCE_S) as answer:
                self.assertEqual(answer.status, 200)

    def test_clients_that_read_nothing(self):
        """Answers of many megabytes pile up for clients that never read; they wait for them, not in the loop."""
        trial = self.trial()
        self.stub.SetTrialUserAttribute(p.SetTrialUserAttributeRequest(trial_id=trial, key="big",
                                                                       value=json.dumps("x" * (4 * MEBIBYTE))))
        stuck = grpc.insecure_channel(self.grpc, options=[("grpc.http2.max_frame_size", 16384),
                                                          ("grpc.max_receive_message_length", -1)])
        self.addCleanup(stuck.close)
        calls = [api_pb2_grpc.StorageServiceStub(stuck).GetTrials.future(
            p.GetTrialsRequest(study_id=self.study, trial_id_greater_than=-1)) for _ in range(50)]
        self.works()
        for call in calls[:25]:
            call.cancel()
        self.works()

    def test_metrics_tell_of_calls_latency_and_commits(self):
        self.works()
        with urllib.request.urlopen(f"http://{self.http}/metrics", timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
        self.assertIn('espalier_requests_total{code="OK",frontend="optuna",method="SetTrialStateValues"} 1', text)
        self.assertIn('espalier_request_seconds_count{frontend="optuna",method="CreateNewTrial"} 1', text)
        for name in ("espalier_commit_seconds_count", "espalier_batch_events_bucket", "espalier_queue_length"):
            self.assertIn(name, text)

    def test_calls_under_way_end_when_the_service_does(self):
        done = []
        stop = threading.Event()

        def work():
            while not stop.is_set():
                try:
                    done.append(self.trial())
                except grpc.RpcError as error:
                    self.assertIn(error.code(), (Code.UNAVAILABLE, Code.CANCELLED))
                    return
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(done) > 200, "some trials")
        self.service.terminate()
        self.finish(self.service)
        stop.set()
        for thread in threads:
            thread.join()
        acknowledged = set(done)
        self.serve(self.dir / "x.db", grpc=self.grpc, http=self.http)
        trials = self.stub.GetTrials(p.GetTrialsRequest(study_id=self.study, trial_id_greater_than=-1),
                                     wait_for_ready=True, timeout=PATIENCE_S).trials
        self.assertLessEqual(acknowledged, {t.trial_id for t in trials})
        self.assertEqual([t.number for t in trials], list(range(len(trials))))

    def tuner(self):
        from harness import TUNER
        return TUNER

    def dashboard(self):
        for line in self.output(self.service).splitlines():
            if line.startswith("dashboard http://"):
                return line.removeprefix("dashboard http://").removesuffix("/dashboard")
        self.fail(self.output(self.service))


class Tls(TunerTest):
    def setUp(self):
        super().setUp()
        self.cert, self.key = self.dir / "cert.pem", self.dir / "key.pem"
        self.certificate(self.cert, self.key)

    def certificate(self, cert, key):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)

    def start_service(self, *options):
        process = self.start("serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--dashboard", "127.0.0.1:0",
                             "--db", self.dir / "x.db", "--tls-cert", self.cert, "--tls-key", self.key, *options)
        wait_for(lambda: "database " in self.output(process), "the service")
        self.grpc, self.http = self.told_address(process, "gRPC"), self.told_address(process, "HTTP")
        return self.told_address(process, "dashboard")

    def test_every_frontend_and_an_agent_with_a_trial(self):
        import ssl
        dashboard = self.start_service()
        trial = self.write("trial.sh", "#!/bin/bash\ntuner tell --final --value 1\n", 0o755)
        self.start("agent", "--join", self.grpc, "--slots", 1, "--dir", self.dir / "agent", "--tls-ca", self.cert)
        self.run_tuner("submit", self.study([trial], trials=1), "--service", self.grpc, "--tls-ca", self.cert, "--wait")
        self.assertIn("COMPLETE", self.run_tuner("show", "e2e", "--service", self.grpc,
                                                 env={"ESPALIER_TLS_CA": str(self.cert)}).stdout)
        roots = grpc.ssl_channel_credentials(self.cert.read_bytes())
        with grpc.secure_channel(self.grpc, roots) as channel:
            studies = api_pb2_grpc.StorageServiceStub(channel).GetAllStudies(p.GetAllStudiesRequest()).studies
        self.assertEqual([s.study_name for s in studies], ["e2e"])
        sys.path.insert(0, str(environment.ROOT / "adapters" / "optuna" / "python"))
        import espalier_optuna
        storage = espalier_optuna.storage(self.grpc, tls_ca=str(self.cert))
        optuna.create_study(study_name="over TLS", storage=storage).optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)
        self.assertEqual(len(optuna.load_study(study_name="over TLS", storage=storage).trials), 2)
        context = ssl.create_default_context(cafile=str(self.cert))
        for url in (f"https://{self.http}/healthz", f"https://{dashboard}/api/studies"):
            with urllib.request.urlopen(url, context=context) as answer:
                self.assertEqual(answer.status, 200)

    def test_the_clear_and_strangers_are_refused(self):
        self.start_service()
        other = self.dir / "other.pem"
        self.certificate(other, self.dir / "other.key")
        for options in ([], ["--tls-ca", other]):
            done = self.run_tuner("ls", "--service", self.grpc, *options, code=None)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(self.grpc, done.stderr)

    def run_tuner(self, *arguments, code=0, **keys):
        if code is not None:
            return super().run_tuner(*arguments, code=code, **keys)
        from harness import TUNER
        return subprocess.run([TUNER, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S)

    def test_files_are_checked(self):
        other = self.dir / "other.key"
        self.certificate(self.dir / "other.pem", other)
        text = self.write("text", "hello\n")
        for cert, key, named in ((self.dir / "none", self.key, "none"), (text, self.key, "text"), (self.cert, text, "text"),
                                 (self.cert, other, "other.key"), (self.key, self.key, "key.pem")):
            done = self.run_tuner("serve", "--grpc", "127.0.0.1:0", "--db", self.dir / "y.db", "--tls-cert", cert,
                                  "--tls-key", key, code=2)
            self.assertIn(named, done.stderr)
        self.assertIn("text", self.run_tuner("ls", "--tls-ca", text, code=2).stderr)


if __name__ == "__main__":
    unittest.main(warnings="ignore")
