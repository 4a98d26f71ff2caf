"""The interface for NNI experiments (docs/nni_protocol.md): real service, agents and trials, which speak the channel with
Python's standard library or print what they find. No NNI is needed."""
import http.client
import json
import re
import shutil
import sys
import time
import unittest

from harness import ROOT, TunerTest, replicas_of, wait_for

FINAL = {"SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED"}
PROTOCOL = (ROOT / "docs/nni_protocol.md").read_text()

# A trial as NNI's SDK makes one. What it does besides is the experiment's: `body` goes on with `parameters`.
TRIAL = """import json, os, sys, time, urllib.request
def call(method, body=None):
    request = urllib.request.Request(os.environ["NNI_TRIAL_COMMAND_CHANNEL"], method=method,
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={{"Content-Type": "application/json"}})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)
def report(kind, sequence, value):
    metric = {{"parameter_id": record["parameter_id"], "trial_job_id": os.environ["NNI_TRIAL_JOB_ID"], "type": kind,
              "sequence": sequence, "value": json.dumps(value)}}
    call("PUT", {{"type": "metric", "metric": json.dumps(metric)}})
call("PUT", {{"type": "request_parameter"}})
record = json.loads(call("GET")["parameter"])
parameters = record["parameters"]
{body}
"""


class Front:
    """What NNI's manager asks of the service."""

    def __init__(self, address, token=None):
        self.address = address
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            text = body if body is None or isinstance(body, str) else json.dumps(body)
            connection.request(method, path, text, self.headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()


class NniTest(TunerTest):
    experiment = "exp1"

    def setUp(self):
        super().setUp()
        self.database = self.dir / "studies.db"
        self.service = self.serve(self.database)
        self.front = Front(self.http)

    def call(self, method, path, body=None, code=200):
        status, text = self.front.send(method, f"/nni/v1{path}", body)
        self.assertEqual(status, code, f"{method} {path}: {text}")
        return text if path.split("/")[-2:-1] == ["files"] and code == 200 else json.loads(text)

    def trial_program(self, body):
        self.write("trial.py", TRIAL.format(body=body))
        return f"{sys.executable} -S trial.py"

    def open(self, command, code=200, experiment=None, **keys):
        body = {"command": command, "directory": str(self.dir), "stop_grace_s": 1, **keys}
        return self.call("PUT", f"/experiments/{experiment or self.experiment}", body, code)

    def submit(self, trial, sequence=0, code=200, **parameters):
        return self.submit_any(trial, parameters, sequence, code)

    def submit_any(self, trial, parameters, sequence=0, code=200):
        text = json.dumps({"parameter_id": sequence, "parameter_source": "algorithm", "parameters": parameters,
                           "parameter_index": 0})
        return self.call("PUT", f"/experiments/{self.experiment}/trials/{trial}",
                         {"sequence": sequence, "parameter": text}, code)

    def cancel(self, trial, early=False):
        return self.call("DELETE", f"/experiments/{self.experiment}/trials/{trial}{'?early_stopped=1' if early else ''}")

    def events(self, after="", wait_s=0):
        return self.call("GET", f"/experiments/{self.experiment}/events?after={after}&wait_s={wait_s}")

    def follow(self, until):
        """Events from the start until until(trials) holds; checks the order of what came."""
        cursor, trials, metrics = "", {}, {}
        end = time.monotonic() + 120
        while not until(trials):
            self.assertLess(time.monotonic(), end, f"waited in vain, last: {trials}")
            reply = self.events(cursor, 5)
            cursor = reply["cursor"]
            for trial in reply["trials"]:
                name = trial["trial"]
                before = trials.get(name, {}).get("state")
                if before in FINAL:
                    self.assertEqual(trial["state"], before, "a final state stays")
                    self.assertEqual(trial["metrics"], [], "nothing comes after it")
                if before == "RUNNING":
                    self.assertNotEqual(trial["state"], "WAITING", "who has started waits no more")
                for metric in trial["metrics"]:
                    key = (name, metric["type"], metric["sequence"])
                    self.assertNotIn(key, metrics, "each comes once")
                    metrics[key] = metric["value"]
                trials[name] = trial
        return trials, metrics

    def ended(self, *names):
        return lambda trials: all(trials.get(name, {}).get("state") in FINAL for name in names)

    def running(self, *names):
        return lambda trials: all(trials.get(name, {}).get("state") == "RUNNING" for name in names)

    def file(self, trial, name, code=200):
        return self.call("GET", f"/experiments/{self.experiment}/trials/{trial}/files/{name}", code=code)


class Trials(NniTest):
    def test_a_script_reports_by_the_channel_and_its_front_end_sees_it_to_the_letter(self):
        self.agent(1)
        self.open(self.trial_program("""
report("PERIODICAL", 0, 0.5)
report("PERIODICAL", 1, float("nan"))
report("PERIODICAL", 1, 7)
report("PERIODICAL", 2, {"default": 0.75, "loss": float("inf")})
report("FINAL", 0, {"default": 0.875})
report("FINAL", 0, 3)
"""))
        self.submit("a", x=0.5)
        trials, metrics = self.follow(self.ended("a"))
        self.assertEqual(trials["a"]["state"], "SUCCEEDED")
        self.assertEqual(metrics, {("a", "PERIODICAL", 0): "0.5", ("a", "PERIODICAL", 1): "NaN",
                                   ("a", "PERIODICAL", 2): '{"default": 0.75, "loss": Infinity}',
                                   ("a", "FINAL", 0): '{"default": 0.875}'})
        self.assertLessEqual(trials["a"]["submitted_at"], trials["a"]["started_at"])
        self.assertLessEqual(trials["a"]["started_at"], trials["a"]["ended_at"])
        [trial] = self.export("--service", self.grpc, study=f"nni-{self.experiment}")["trials"]
        self.assertEqual([(v["step"], v["value"]) for v in trial["values"]], [(1, 0.5), (3, 0.75)])
        self.assertEqual(trial["value"], 0.875)

    def test_the_exit_code_decides_and_no_final_value_is_made_up(self):
        self.agent(1)
        self.open(self.trial_program("""
report("PERIODICAL", 0, 0.5)
sys.exit(parameters["exit"])
"""))
        self.submit("good", 0, exit=0)
        self.submit("bad", 1, exit=3)
        trials, metrics = self.follow(self.ended("good", "bad"))
        self.assertEqual([trials[name]["state"] for name in ("good", "bad")], ["SUCCEEDED", "FAILED"])
        self.assertIn("code 3", trials["bad"]["message"])
        self.assertEqual(sorted(metrics), [("bad", "PERIODICAL", 0), ("good", "PERIODICAL", 0)])

    def test_a_trial_that_reports_nothing_has_succeeded(self):
        self.agent(1)
        self.open("true")
        self.submit("a")
        trials, metrics = self.follow(self.ended("a"))
        self.assertEqual((trials["a"]["state"], metrics), ("SUCCEEDED", {}))

    def test_what_a_trial_finds_in_its_environment(self):
        self.agent(1)
        checkpoints = self.dir / "checkpoints"
        population = self.dir / "population"
        self.open("env; pwd; cat $ESPALIER_PARAMETERS; ls -d $ADAPTDL_CHECKPOINT_PATH $ADAPTDL_SHARE_PATH "
                  "$ADAPTDL_TENSORBOARD_LOGDIR; echo broken >&2; cat /proc/$$/stat",
                  checkpoint_directory=str(checkpoints), environment={"OWN": "value", "NO_PROXY": "elsewhere"},
                  gpus_per_trial=0)
        self.submit("a", 7, lr=0.1, nested={"_name": "A", "p": 0.25},
                    load_checkpoint_dir=str(population / "0/0"), save_checkpoint_dir=str(population / "0/1"))
        trials, _ = self.follow(self.ended("a"))
        self.assertEqual(trials["a"]["state"], "SUCCEEDED")
        output = self.file("a", "stdout")
        folder = str(self.dir / "agent-node" / "nni-exp1" / "trial-0")
        self.assertEqual(trials["a"]["directory"], folder)
        for line in ("NNI_PLATFORM=espalier", "NNI_EXP_ID=exp1", "NNI_TRIAL_JOB_ID=a", "NNI_TRIAL_SEQ_ID=7",
                     f"NNI_SYS_DIR={folder}", f"NNI_OUTPUT_DIR={folder}", f"NNI_CODE_DIR={self.dir}",
                     f"ADAPTDL_CHECKPOINT_PATH={checkpoints}/a", f"ESPALIER_CHECKPOINT_DIR={checkpoints}/a",
                     f"ADAPTDL_SHARE_PATH={folder}/share", f"ADAPTDL_TENSORBOARD_LOGDIR={folder}/tensorboard",
                     "NO_PROXY=elsewhere,127.0.0.1", "OWN=value", "CUDA_VISIBLE_DEVICES=", str(self.dir), "broken"):
            self.assertIn(f"\n{line}\n", f"\n{output}")
        self.assertIn(f"NNI_TRIAL_COMMAND_CHANNEL=http://{self.http}/nni/v1/channel/exp1/a/", output)
        self.assertNotIn("ESPALIER_NNI", output)
        self.assertIn('"nested":{"_name":"A","p":0.25}', output)
        self.assertTrue((population / "0").is_dir())
        self.assertFalse((population / "0/1").exists(), "the trial's own to make")
        self.assertEqual(json.loads(self.file("a", "parameter.cfg"))["parameter_id"], 7)
        self.assertIn("stdout", self.file("a", "stderr"))
        self.assertIn("start, 0 to 1 slots", self.file("a", "trial.log"))
        self.assertIn("known: stdout", self.file("a", "passwd", code=404)["error"])

    def test_a_command_is_run_by_bash_or_else_by_sh(self):
        self.agent(1)
        self.write("activate", "ACTIVE=yes\n")
        self.open("source ./activate && [[ $ACTIVE = yes ]] && echo {1..3}")
        self.submit("a")
        trials, _ = self.follow(self.ended("a"))
        self.assertEqual((trials["a"]["state"], self.file("a", "stdout")), ("SUCCEEDED", "1 2 3\n"))
        # As on a machine without bash: no folder of PATH has it.
        programs = self.dir / "programs"
        programs.mkdir()
        (programs / "mkdir").symlink_to(shutil.which("mkdir"))
        self.experiment = "exp2"
        self.open('. ./activate && echo "$ACTIVE, $BASH_VERSION"', environment={"PATH": str(programs)})
        self.submit("a")
        trials, _ = self.follow(self.ended("a"))
        self.assertEqual((trials["a"]["state"], self.file("a", "stdout")), ("SUCCEEDED", "yes, \n"))

    def test_the_machines_exceptions_from_its_proxy_stay(self):
        self.agent(1)
        for name, lower, upper, found in (("lower", "own", "", "own,127.0.0.1 own,127.0.0.1"),
                                          ("upper", "", "own", "own,127.0.0.1 own,127.0.0.1"),
                                          ("both", "own", "other", "own,127.0.0.1 other,127.0.0.1")):
            with self.subTest(name):
                self.experiment = name
                self.open('echo "$no_proxy $NO_PROXY"', environment={"no_proxy": lower, "NO_PROXY": upper})
                self.submit("a")
                self.follow(self.ended("a"))
                self.assertEqual(self.file("a", "stdout"), f"{found}\n")

    def test_parameters_may_be_any_json(self):
        self.agent(1)
        self.open(self.trial_program("""
report("FINAL", 0, [parameters, json.load(open(os.environ["ESPALIER_PARAMETERS"]))])
"""))
        for sequence, (trial, parameters) in enumerate((("list", [1, {"x": 2}]), ("number", 0.5))):
            self.submit_any(trial, parameters, sequence)
            trials, metrics = self.follow(self.ended(trial))
            self.assertEqual(trials[trial]["state"], "SUCCEEDED", self.file(trial, "stdout"))
            self.assertEqual(json.loads(metrics[(trial, "FINAL", 0)]), [parameters, {"parameters": parameters}])

    def test_a_submission_again_changes_nothing_and_an_ended_trial_is_not_run_again(self):
        self.agent(1)
        self.open(f"echo run >> {self.dir}/runs")
        self.submit("a")
        self.submit("a")
        self.follow(self.ended("a"))
        self.assertEqual(self.submit("a")["state"], "SUCCEEDED")
        self.submit("b", 1)
        self.follow(self.ended("b"))
        self.assertEqual((self.dir / "runs").read_text().count("run"), 2)
        self.assertEqual(self.open(f"echo run >> {self.dir}/runs")["trials"], ["a", "b"])

    def test_cancelled_trials_are_final_when_their_processes_are_gone(self):
        agent = self.agent(2)
        self.open(f"trap 'sleep 0.5; exit' TERM; echo ready >> {self.dir}/ready; sleep 1000 & wait")
        for sequence, name in enumerate(("early", "user", "waiting")):
            self.submit(name, sequence)
        self.follow(self.running("early", "user"))
        wait_for(lambda: (self.dir / "ready").exists() and (self.dir / "ready").read_text().count("ready") == 2,
                 "programs that can be told to end")
        self.assertEqual(self.cancel("waiting")["state"], "USER_CANCELED")
        self.assertEqual(self.cancel("early", early=True)["state"], "RUNNING")
        self.cancel("early", early=True)
        self.cancel("user")
        trials, _ = self.follow(self.ended("early", "user", "waiting"))
        self.assertEqual(replicas_of(agent.pid, "sleep 1000"), [])
        self.assertEqual({name: trial["state"] for name, trial in trials.items()},
                         {"early": "EARLY_STOPPED", "user": "USER_CANCELED", "waiting": "USER_CANCELED"})
        self.assertIsNone(trials["waiting"]["started_at"])
        self.assertIn("has not started", self.file("waiting", "stdout", code=404)["error"])
        self.assertEqual(self.cancel("user")["state"], "USER_CANCELED")

    def test_the_command_line_cancels_too(self):
        self.open("true")
        self.submit("a")
        done = self.run_tuner("cancel", "nni-exp1", 0, "--pruned", "--reason", "too slow", "--service", self.grpc)
        self.assertEqual(done.stdout, "trial 0 is PRUNED: too slow\n")
        self.assertEqual(self.submit("a")["state"], "EARLY_STOPPED")
        refused = self.run_tuner("cancel", "nni-exp1", 7, "--service", self.grpc, code=4)
        self.assertIn('study "nni-exp1" has no trial 7; it has 1', refused.stderr)

    def test_a_restarted_trial_gets_the_same_parameter_and_its_reports_count_once(self):
        first = self.agent(1, "first")
        self.open(self.trial_program("""
path = os.environ["ADAPTDL_CHECKPOINT_PATH"] + "/step"
step = int(open(path).read()) if os.path.exists(path) else 0
report("PERIODICAL", 0, step)
if step == 0:
    open(path, "w").write("1")
    time.sleep(1000)
report("PERIODICAL", 1, parameters["x"])
report("FINAL", 0, step)
"""), checkpoint_directory=str(self.dir / "checkpoints"))
        self.submit("a", x=4)
        self.follow(lambda trials: bool(trials.get("a", {}).get("metrics")))
        written = self.dir / "checkpoints" / "a" / "step"
        wait_for(lambda: written.exists() and written.read_text() == "1", "its checkpoint")
        first.kill()
        self.agent(1, "second")
        trials, metrics = self.follow(self.ended("a"))
        self.assertEqual(metrics, {("a", "PERIODICAL", 0): "0", ("a", "PERIODICAL", 1): "4", ("a", "FINAL", 0): "1"})

    def test_a_further_parameter_answers_the_next_request(self):
        self.agent(1)
        self.open(self.trial_program("""
while parameters["x"] == 0:
    time.sleep(0.02)
    call("PUT", {"type": "request_parameter"})
    parameters = json.loads(call("GET")["parameter"])["parameters"]
report("FINAL", 0, parameters["x"])
"""))
        self.submit("a", x=0)
        self.follow(self.running("a"))
        self.call("PUT", f"/experiments/{self.experiment}/trials/a/parameter",
                  {"parameter": json.dumps({"parameter_id": 0, "parameters": {"x": 5}})})
        _, metrics = self.follow(self.ended("a"))
        self.assertEqual(metrics[("a", "FINAL", 0)], "5")

    def test_who_reports_by_our_own_protocol_shows_metrics_and_a_final_one(self):
        self.agent(1)
        self.open("for step in 3 5 9; do tuner tell --step $step --value 0.$step; done")
        self.submit("a")
        _, metrics = self.follow(self.ended("a"))
        self.assertEqual(metrics, {("a", "PERIODICAL", 0): "0.3", ("a", "PERIODICAL", 1): "0.5",
                                   ("a", "PERIODICAL", 2): "0.9", ("a", "FINAL", 0): "0.9"})


class Resuming(NniTest):
    COUNTER = """
path = os.environ["ADAPTDL_CHECKPOINT_PATH"] + "/step"
step = int(open(path).read()) if os.path.exists(path) else 0
while step < 4 or os.path.exists("hold"):
    step += 1
    open(path, "w").write(str(step))
    report("PERIODICAL", step - 1, step)
    while os.path.exists("hold") and step >= 2:
        time.sleep(0.02)
report("FINAL", 0, step)
"""

    def test_a_stopped_experiment_goes_on_from_checkpoints_with_what_is_submitted_again(self):
        agent = self.agent(2)
        self.write("hold", "")
        command = self.trial_program(self.COUNTER)
        self.open(command)
        for sequence, name in enumerate(("again", "forgotten")):
            self.submit(name, sequence)
        self.follow(lambda trials: all(len(self.submit(n)["metrics"]) == 2 for n in ("again", "forgotten")))
        self.call("POST", f"/experiments/{self.experiment}/stop")
        self.call("POST", f"/experiments/{self.experiment}/stop")
        wait_for(lambda: not replicas_of(agent.pid, "trial.py"), "the trials to end")
        self.assertIn("open it again", self.submit("again", code=409)["error"])
        (self.dir / "hold").unlink()
        self.assertEqual(self.open(command, resume=True)["trials"], ["again", "forgotten"])
        self.submit("again")
        trials, metrics = self.follow(self.ended("again"))
        self.assertEqual([metrics[("again", "PERIODICAL", i)] for i in range(4)], ["1", "2", "3", "4"])
        self.assertEqual(trials["forgotten"]["state"], "RUNNING", "has started, and waits to be submitted again")
        self.assertEqual(replicas_of(agent.pid, "trial.py"), [])

    def test_a_restarted_service_tells_all_from_the_start_and_the_secret_stays(self):
        self.agent(1)
        self.write("hold", "")
        command = self.trial_program(self.COUNTER)
        self.open(command)
        self.submit("a")
        self.follow(lambda trials: len(self.submit("a")["metrics"]) == 2)
        cursor = self.events()["cursor"]
        self.assertEqual(self.events(cursor)["trials"], [])
        self.service.kill()
        self.service.wait()
        self.service = self.serve(self.database, self.grpc, self.http)
        self.assertEqual([m["value"] for m in self.events(cursor)["trials"][0]["metrics"]], ["1", "2"])
        (self.dir / "hold").unlink()
        self.open(command, resume=True)
        _, metrics = self.follow(self.ended("a"))
        self.assertEqual(metrics[("a", "FINAL", 0)], "4", "by the channel that the trial knew before")


class Frontend(NniTest):
    def test_the_service_says_who_it_is(self):
        self.assertEqual(self.call("GET", "/service"),
                         {"name": "espalier", "version": self.run_tuner("version").stdout.split()[1], "protocol": 1,
                          "slots": 0, "nodes": 0})
        self.agent(3)
        wait_for(lambda: self.call("GET", "/service")["slots"] == 3, "the agent")

    def test_bad_requests_are_told_what_is_wrong(self):
        good = {"command": "true", "directory": "/tmp"}
        for change, says in (({"command": None}, '"command" is missing'), ({"directory": "here"}, "absolute path"),
                             ({"min_slots": 0}, '"min_slots"'), ({"priority": "high"}, '"priority"'),
                             ({"adaptive": 1}, '"adaptive": needs true or false'), ({"gpu": 1}, 'unknown key "gpu"'),
                             ({"environment": {"A": []}}, '"environment.A"'),
                             ({"checkpoint_directory": "c"}, "absolute path")):
            with self.subTest(change):
                reply = self.call("PUT", "/experiments/e", {**good, **change}, 400)
                self.assertIn(says, reply["error"])
        for body in ("", "[]", "{"):
            self.assertIn("the body", self.call("PUT", "/experiments/e", body, 400)["error"])
        self.assertIn("letters, digits", self.call("PUT", "/experiments/a%2Fb", good, 400)["error"])
        self.assertIn("no experiment", self.call("GET", "/experiments/e/events", code=404)["error"])
        self.call("PUT", "/experiments/e", good)
        self.assertIn("wait_s", self.call("GET", "/experiments/e/events?wait_s=x", code=400)["error"])
        self.assertIn("has no trial", self.call("DELETE", "/experiments/e/trials/a", code=404)["error"])
        for parameter in (None, "x", json.dumps({"parameter_id": 1})):
            reply = self.call("PUT", "/experiments/e/trials/a", {"sequence": 0, "parameter": parameter}, 400)
            self.assertIn('"parameter"', reply["error"])
        reply = self.call("PUT", "/experiments/e", {**good, "command": "false", "priority": 2}, 409)
        self.assertIn("differs in: command, priority", reply["error"])

    def test_a_trial_that_the_pool_can_never_run_is_refused(self):
        self.agent(2)
        wait_for(lambda: self.call("GET", "/service")["slots"] == 2, "the agent")
        self.assertIn("needs 1 GPUs, and the pool has 0 GPUs and 2 slots on 1 node",
                      self.open("true", 409, gpus_per_trial=1)["error"])
        self.assertIn("needs 3 slots", self.open("true", 409, min_slots=3)["error"])
        self.open("true", min_slots=2)

    def test_events_are_waited_for(self):
        self.open("true")
        cursor = self.events()["cursor"]
        start = time.monotonic()
        self.assertEqual(self.events(cursor, 1), {"cursor": cursor, "trials": []})
        self.assertGreaterEqual(time.monotonic() - start, 1)
        self.submit("a")
        reply = self.events(cursor, 20)
        self.assertEqual([t["state"] for t in reply["trials"]], ["WAITING"])

    def test_shutting_down_ends_the_waits(self):
        self.open("true")
        cursor = self.events()["cursor"]
        connection = http.client.HTTPConnection(self.http, timeout=60)
        asked = time.monotonic()
        connection.request("GET", f"/nni/v1/experiments/{self.experiment}/events?after={cursor}&wait_s=25")
        wait_for(lambda: "NniEvents" in self.front.send("GET", "/metrics")[1], "the first requests to be counted")
        self.service.terminate()
        self.finish(self.service)
        self.assertLess(time.monotonic() - asked, 25, "the wait was not ended")
        connection.close()

    def test_the_channel_needs_its_secret_and_nothing_else_does_without_the_token(self):
        self.service.terminate()
        self.finish(self.service)
        token = self.write("token", "tell-no-one\n")
        self.service = self.serve_with_token(token)
        self.front = Front(self.http, "tell-no-one")
        # Told of no HTTP address: trials are told where the front end has found the service.
        self.start("agent", "--join", self.grpc, "--slots", 1, "--name", "node", "--dir", self.dir / "agent-node",
                   "--token-file", token)
        self.open(self.trial_program('report("FINAL", 0, 1)'))
        self.submit("a")
        _, metrics = self.follow(self.ended("a"))
        self.assertEqual(metrics[("a", "FINAL", 0)], "1")
        stranger = Front(self.http)
        for path in ("service", "experiments/exp1/events", "channels"):
            self.assertEqual(stranger.send("GET", f"/nni/v1/{path}")[0], 401)
        for path in ("exp1/a/" + 32 * "0", "exp1/b/x", "other/a/x"):
            status, text = stranger.send("GET", f"/nni/v1/channel/{path}")
            self.assertEqual((status, json.loads(text)["error"]), (404, "no such channel"))

    def serve_with_token(self, token):
        process = self.start("serve", "--grpc", self.grpc, "--http", self.http, "--db", self.database, "--token-file",
                             token)
        wait_for(lambda: "ok" in self.healthz(), "the service to answer")
        return process

    def healthz(self):
        try:
            return Front(self.http).send("GET", "/healthz")[1]
        except OSError:
            return ""

    def test_the_channel_is_found_by_any_name_and_the_rest_is_not(self):
        self.open("true")
        self.submit("a")
        record = json.loads(self.front.send("GET", "/api/trials/1")[1])
        channel = record["system_attributes"]["espalier:environment"]["ESPALIER_NNI_CHANNEL"]
        self.front.headers = {"Host": "head-node"}
        self.assertEqual(self.front.send("GET", channel)[0], 200)
        self.assertEqual(self.front.send("GET", "/nni/v1/service")[0], 403)

    def test_every_route_is_described(self):
        routes = re.findall(r'"([A-Z]+)",\s*(?:\.path = )?"/nni/v1([^"]*)"', (ROOT / "adapters/nni/service/frontend.cc").read_text())
        self.assertGreaterEqual(len(routes), 10)
        text = PROTOCOL.replace("`PUT .../trials", "`PUT /nni/v1/experiments/{experiment}/trials").replace(
            "`DELETE .../trials", "`DELETE /nni/v1/experiments/{experiment}/trials").replace(
            "`GET .../trials", "`GET /nni/v1/experiments/{experiment}/trials")
        for method, path in routes:
            if not path.startswith("/channel"):
                self.assertIn(f"`{method} /nni/v1{path}", text)


if __name__ == "__main__":
    unittest.main()
