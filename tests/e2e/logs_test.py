"""`tuner logs` and its REST twin: what trials print, on whichever machine they ran."""
import json
import shutil
import unittest
import urllib.error
import urllib.request

from harness import LEASE_S, TunerTest, wait_for


class Logs(TunerTest):
    def serve_on_disk(self):
        self.serve(self.dir / "espalier.db", options=["--lease", LEASE_S])

    def logs(self, trial=0, *options, code=0):
        return self.run_tuner("logs", "e2e", trial, *options, "--service", self.grpc, code=code)

    def submit(self, script, **keys):
        script = self.write("trial.sh", "#!/bin/sh\n" + script, 0o755)
        self.run_tuner("submit", self.study([script], trials=1, **keys), "--service", self.grpc)

    def ended(self):
        return self.export("--service", self.grpc)["study"]["state"] != "STUDY_RUNNING"

    def rest(self, trial):
        with urllib.request.urlopen(f"http://{self.http}/api/trials/{trial}/output") as answer:
            return answer.headers["Content-Type"], answer.read()

    def connected(self):
        with urllib.request.urlopen(f"http://{self.http}/api/pool") as answer:
            return [node["name"] for node in json.load(answer).get("nodes", []) if node["connected"]]

    def printed(self, trial):
        """Kind and text of what there is of it so far; None as long as the trial has not begun, or its agent does not answer."""
        try:
            return self.rest(trial)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def test_both_outputs_while_it_runs_and_after(self):
        self.serve_on_disk()
        self.agent(1)
        self.submit("echo one; echo two >&2; printf '\\377\\n'; tuner tell --step 1 --value 3\n"
                    "[ \"$(tuner tell --step 2 --value 2)\" = continue ] && echo heard\n"
                    f"while [ ! -e {self.dir}/gate ]; do sleep 0.05; done\n"
                    "echo three; tuner tell --final --value 1\n")
        _, text = wait_for(lambda: (so_far := self.printed(1)) and b"heard" in so_far[1] and so_far, "what it has printed so far")
        self.assertNotIn(b"three", text)
        (self.dir / "gate").touch()
        wait_for(self.ended, "the study to end")
        kind, text = wait_for(lambda: self.printed(1), "what it has printed")
        self.assertEqual(kind, "text/plain; charset=utf-8")
        self.assertEqual(text.splitlines(), [b"one", b"two", b"\xff", b"heard", b"three"])
        self.assertEqual(self.logs(0, "-n", 1).stdout, "three\n")

    def test_a_trial_that_has_moved_has_printed_in_two_places(self):
        self.serve_on_disk()
        first = self.agent(1, "first")
        self.submit(f"if [ ! -e {self.dir}/once ]; then echo here; touch {self.dir}/once; while :; do sleep 0.1; done; fi\n"
                    "echo there; tuner tell --final --value 1 >/dev/null\n")
        wait_for((self.dir / "once").exists, "the trial's start")
        first.terminate()  # and not killed, after which the trial would move when a lease has ended
        first.wait()
        self.agent(1, "second")
        wait_for(self.ended, "the study to end")
        text = self.logs().stdout
        self.assertIn("==> node second <==\n", text)
        self.assertIn("there\n", text)
        self.assertIn("(more is on node first", text)
        self.assertIn(f"below {self.dir / 'agent-first'}", text)
        self.agent(1, "first")
        text = wait_for(lambda: "more is" not in (text := self.logs().stdout) and text, "the first agent to be back")
        self.assertEqual(text, "==> node first <==\nhere\n==> node second <==\nthere\n")

    def test_a_long_log_loses_its_middle_while_its_trial_runs(self):
        self.serve_on_disk()
        self.agent(1, options=["--max-log", "4M"])
        self.submit(f"echo first; yes | head -c 9000000; echo last; while [ ! -e {self.dir}/gate ]; do sleep 0.05; done\n"
                    "echo more; tuner tell --final --value 1 >/dev/null\n")
        def log():
            texts = [path.read_bytes() for path in self.dir.glob("agent*/e2e/trial-0/replica-*.log")]
            return b"".join(texts)
        wait_for(lambda: (text := log()).endswith(b"last\n") and len(text) <= 4 << 20, "the log to be cut")
        self.assertTrue(log().startswith(b"first\ny\n"))
        self.assertIn(b"left out", log())
        self.assertEqual(self.logs(0, "-n", 1).stdout, "last\n")
        (self.dir / "gate").touch()
        wait_for(self.ended, "the study to end")
        self.assertEqual(self.logs(0, "-n", 2).stdout, "last\nmore\n")

    def test_of_a_run_they_are_there_when_it_has_ended(self):
        script = self.write("trial.sh", "#!/bin/sh\necho hello; tuner tell --final --value 1 >/dev/null\n", 0o755)
        run = self.dir / "run"
        self.run_tuner("run", self.study([script], trials=1), "--dir", run, "--slots", 1)
        for place in (["--dir", run], ["--db", run / "espalier.db"]):
            self.assertEqual(self.run_tuner("logs", "e2e", 0, *place).stdout, "hello\n")
        shutil.copy(run / "espalier.db", self.dir / "alone.db")
        refused = self.run_tuner("logs", "e2e", 0, "--db", self.dir / "alone.db", code=4).stderr
        self.assertIn(f"there is no folder {self.dir / 'trials'}/e2e/trial-0", refused)

    def test_what_is_not_there_is_said(self):
        self.serve_on_disk()
        self.submit("true\n", slots={"min": 1})
        self.assertIn('study "e2e" has no trial 3; it has', self.logs(3, code=4).stderr)
        self.assertRegex(self.logs(0, "--lines=-1", code=2).stderr, "--lines.*-1")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.rest(99)
        self.assertEqual(caught.exception.code, 404)
        self.assertIn("no trial with id 99", json.loads(caught.exception.read())["error"])
        agent = self.agent(1)
        wait_for(lambda: self.export("--service", self.grpc)["trials"], "a trial")
        agent.terminate()
        agent.wait()
        wait_for(lambda: not self.connected(), "the service to notice")
        refused = self.logs(0, code=4).stderr
        self.assertIn("on node node, below", refused)
        self.assertIn("its agent is not connected", refused)


if __name__ == "__main__":
    unittest.main(verbosity=2)
