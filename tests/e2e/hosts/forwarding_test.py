"""Trials on other hosts than a service that speaks TLS: they speak with their own agent, in the clear on loopback, and
need neither the service's address nor its certificate."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import hosts

hosts.run_inside(__file__)

import unittest

from harness import LEASE_S, wait_for
from hosts import HostsTest
from nni_service_test import TRIAL

# Says what it found, and then what the test lets it say.
PROGRAM = """#!/bin/bash
cd {folder}
env > environment
cp $ESPALIER_TOKEN_FILE token
gate() {{ while [ ! -e $1 ]; do sleep 0.05; done; }}
by_http() {{
  curl -sf --noproxy '*' -H "Authorization: Bearer $(cat $ESPALIER_TOKEN_FILE)" -H 'Content-Type: application/json' \\
    -d "$1" $ESPALIER_HTTP/api/trials/$ESPALIER_TRIAL_ID/tell
}}
tuner tell --step 1 --value 0.5 || exit 1
by_http '{{"step": 2, "value": 0.25}}' || exit 2
gate replaced
tuner tell --step 3 --value 0.2 || exit 3
by_http '{{"step": 4, "value": 0.1}}' || exit 4
gate away
tuner tell --step 5 --value 0.05 || exit 5
tuner tell --value 0.01 --final || exit 6
"""


class Forwarding(HostsTest):
    def start_pool(self):
        self.one, self.two = self.make_network(2)
        self.service = self.serve_tls_on(self.one, options=("--lease", LEASE_S))
        self.node = self.agent_on(self.two)
        wait_for(lambda: "of 1 slots" in self.client("pool").stdout, "the agent")

    def await_steps(self, steps):
        wait_for(lambda: (t := self.trial()) and steps in [int(v["step"]) for v in t["values"]], f"report {steps}")

    def let(self, gate):
        (self.dir / gate).touch()

    def test_a_trial_speaks_with_its_agent_which_may_be_replaced_and_the_service_restarted(self):
        self.start_pool()
        program = self.write("trial.sh", PROGRAM.format(folder=self.dir), 0o755)
        self.client("submit", self.study([program], trials=1))
        self.await_steps(2)
        found = dict(line.split("=", 1) for line in (self.dir / "environment").read_text().splitlines()
                     if line.startswith("ESPALIER_") and "=" in line)
        self.assertRegex(found["ESPALIER_SERVICE"], r"^127\.0\.0\.1:\d+$")
        self.assertRegex(found["ESPALIER_HTTP"], r"^http://127\.0\.0\.1:\d+$")
        self.assertNotIn("ESPALIER_TLS_CA", found)
        self.assertNotIn(self.one.ip4, "".join(v for k, v in found.items()))
        token = (self.dir / "token").read_text().strip()
        self.assertRegex(token, r"^esp1\.trial-\d+-\d+\.[0-9a-f]{64}$")
        hash_of_the_certificate = self.token.read_text().strip().split(".")[3]
        self.assertNotIn(hash_of_the_certificate, "".join(found.values()))

        replaced = self.run_tuner("agent", "--replace", "--name", self.two.name, "--dir", self.two.folder / "agent",
                                  prefix=self.two.prefix())
        self.assertIn("goes on as release", replaced.stdout)
        self.let("replaced")
        self.await_steps(4)

        self.service.terminate()
        self.finish(self.service)
        self.let("away")
        self.service = self.serve_tls_on(self.one, options=("--lease", LEASE_S))
        self.await_steps(5)
        wait_for(lambda: self.exported()["study"]["state"] == "STUDY_COMPLETE", "the study to end")
        (trial,) = self.exported()["trials"]
        self.assertEqual((trial["state"], int(trial.get("restarts", 0))), ("TRIAL_COMPLETE", 0))
        self.assertNotIn("not forwarded: this port", self.output(self.node))

    def test_the_ports_are_on_loopback_alone(self):
        self.start_pool()
        before = wait_for(lambda: self.listening_ports(self.two), "the server of checkpoints")
        self.client("submit", self.study(["/bin/sleep", "1000"], trials=1))
        wait_for(self.trial, "the trial")
        self.assertEqual(self.listening_ports(self.two), before)
        self.assertEqual(len(before), 1)

    def test_the_ports_give_nobody_a_right(self):
        self.start_pool()
        program = self.write("trial.sh", f"#!/bin/bash\nenv > {self.dir}/environment.new\n"
                             f"mv {self.dir}/environment.new {self.dir}/environment\nsleep 1000\n", 0o755)
        self.client("submit", self.study([program], trials=1))
        wait_for((self.dir / "environment").exists, "the trial")
        found = dict(line.split("=", 1) for line in (self.dir / "environment").read_text().splitlines() if "=" in line)

        def status(*before):
            """What a call without a token gets at the agent's port; 000: nothing."""
            command = [*self.two.prefix(), *before, "curl", "-s", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}",
                       found["ESPALIER_HTTP"] + "/api/studies"]
            return subprocess.run(command, capture_output=True, text=True).stdout
        # The service hears the agent, and knows its user no better than any other from elsewhere.
        self.assertEqual(status(), "401")
        if hosts.can_be_nobody():
            self.assertEqual(status(*hosts.AS_NOBODY), "000")
            wait_for(lambda: f"of user {hosts.NOBODY} was closed" in self.output(self.node), "the log")

    def https(self, method, path, body):
        """A call to the service, as NNI's manager makes it on the service's host."""
        token = self.token.read_text().strip()
        done = self.one.run("curl", "-sS", "--noproxy", "*", "--cacert", self.credentials / "certificate.pem", "-X", method,
                            "-H", f"Authorization: Bearer {token}", "-H", "Content-Type: application/json",
                            "-d", json.dumps(body), f"https://{self.http}/nni/v1{path}")
        answer = json.loads(done)
        self.assertNotIn("error", answer)
        return answer

    def test_nnis_trials_speak_no_tls_and_need_none(self):
        self.start_pool()
        self.write("trial.py", TRIAL.format(body="""
assert os.environ["NNI_TRIAL_COMMAND_CHANNEL"].startswith("http://127.0.0.1:")
report("PERIODICAL", 0, 0.5)
report("FINAL", 0, parameters["x"])
"""))
        self.https("PUT", "/experiments/exp1", {"command": f"{sys.executable} -S trial.py", "directory": str(self.dir),
                                                "stop_grace_s": 1})
        parameter = json.dumps({"parameter_id": 0, "parameter_source": "algorithm", "parameters": {"x": 0.25},
                                "parameter_index": 0})
        self.https("PUT", "/experiments/exp1/trials/a", {"sequence": 0, "parameter": parameter})
        wait_for(lambda: (t := self.exported("nni-exp1")["trials"]) and t[0]["state"].endswith(("COMPLETE", "FAILED")),
                 "the trial to end")
        (trial,) = self.exported("nni-exp1")["trials"]
        self.assertEqual((trial["state"], trial["value"]), ("TRIAL_COMPLETE", 0.25),
                         self.client("logs", "nni-exp1", "0").stdout)


if __name__ == "__main__":
    unittest.main()
