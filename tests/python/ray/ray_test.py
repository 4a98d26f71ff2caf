"""`python -m espalier.ray` and `espalier-on-ray` on a real Ray cluster: nodes are actors that come with a study and go with
it, whatever happens to machines, actors and the program that asks for them."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import threading
import types
import unittest
import unittest.mock

import cluster

if __name__ == "__main__":
    # So often in a row a raylet does not answer before Ray takes it for dead: never, unless a test says so.
    FOLDER = cluster.prepare(__file__, RAY_health_check_failure_threshold="1000000")

import ray  # noqa: E402
from espalier import Client  # noqa: E402
from espalier.errors import UsageError  # noqa: E402
from espalier.ray import _connect, _machine_server, _machines, _pool, _results  # noqa: E402
from espalier.ray._bounded import BoundedCalls  # noqa: E402
from espalier.ray._job import Log  # noqa: E402
from espalier.ray._node import default_root  # noqa: E402
from harness import PATIENCE_S, kill, processes, wait_for  # noqa: E402
from ray_case import NODES, RayTest  # noqa: E402

SERVICE = f"{cluster.ADDRESS}:7077"

JOB = """
import pathlib, sys, time
import torch
import espalier, espalier.torch as adl

trial = espalier.trial()
torch.manual_seed(1)
model, data = torch.nn.Linear(4, 1), torch.utils.data.TensorDataset(torch.rand(200, 4), torch.rand(200, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
model = adl.AdaptiveDataParallel(model, optimizer)
loader = adl.AdaptiveDataLoader(data, batch_size=20)
go_on = pathlib.Path(sys.argv[1])
for epoch in adl.epochs(100_000):
    for x, y in loader:
        time.sleep(0.01)
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    if model.rank == 0:
        print("has an epoch", flush=True)
    if adl.evaluate(lambda indices: {"end": len(indices) * go_on.exists()}, 10, 10)["end"]:
        break
if model.rank == 0:
    pathlib.Path("model.txt").write_text(f"{epoch} epochs")
    print("it has trained", flush=True)
"""


class Parts(unittest.TestCase):
    def test_another_major_release_is_refused_by_name(self):
        _connect.check_release("2.60.0")
        for release in ("1.13.0", "3.0.0"):
            with self.assertRaisesRegex(UsageError, f"Ray {re.escape(release)}: espalier.ray speaks with Ray 2"):
                _connect.check_release(release)

    def connecting(self, *outcomes, address="ray://head:10001"):
        """Of a Ray whose init raises one after the other; returns how often it was asked, and what came of it."""
        left = list(outcomes)

        def init(**_):
            outcome = left.pop(0)
            if outcome is not None:
                raise outcome

        fake = types.SimpleNamespace(init=init, exceptions=ray.exceptions)
        try:
            _connect.join(fake, address)
            told = ""
        except UsageError as error:
            told = str(error)
        return len(outcomes) - len(left), told

    def test_a_client_server_that_is_slow_is_asked_again(self):
        slow = lambda: ConnectionAbortedError("Initialization failure from server:\nTraceback\nRuntimeError: Proxy failed")
        self.assertEqual(self.connecting(slow(), slow(), None), (3, ""))
        asked, told = self.connecting(slow(), slow(), slow(), None)
        self.assertEqual(asked, 3)
        self.assertRegex(told, r"^Ray at ray://head:10001: .*3 times: RuntimeError: Proxy failed$")

    def test_a_token_is_asked_for_only_where_it_may_be_the_matter(self):
        for error, token in ((ConnectionError("ray client connection timeout"), True),
                             (ConnectionError("GRPC connection failed: UNAUTHENTICATED"), True),
                             (ConnectionError("GRPC connection failed: RESOURCE_EXHAUSTED"), False),
                             (RuntimeError("version mismatch"), False)):
            asked, told = self.connecting(error)
            self.assertEqual(asked, 1)
            self.assertIn(f"Ray at ray://head:10001: {error}", told)
            self.assertEqual("token" in told, token, told)

    def test_a_log_is_told_once_also_when_a_second_node_comes(self):
        log = Log()
        self.assertEqual(log.news(""), "")
        self.assertEqual(log.news("a\nb\n"), "a\nb\n")
        self.assertEqual(log.news("==> node x <==\nc\n==> node y <==\na\nb\nd\n"),
                         "==> node x <==\nc\n==> node y <==\nd\n")
        self.assertEqual(log.news("==> node x <==\nc\n==> node y <==\na\nb\nd\ne\n\n(more is on node z (it is away))\n"),
                         "e\n")
        long = "".join(f"line {n}\n" for n in range(1000))
        self.assertEqual(Log().news(long), long)
        cut = Log()
        cut.news(long)
        self.assertEqual(cut.news(long[2000:] + "new\n"), "new\n")

    def stopping(self, *outcomes):
        """An actor whose calls to stop come to that, one after the other; a call without an outcome hears nothing. Returns
        what was done with it."""
        left, done = list(outcomes), []

        class Actor:
            class stop:
                @staticmethod
                def remote():
                    done.append("told")
                    return left.pop(0) if left else None

        def get(outcome):
            if outcome != "taken":
                raise outcome

        fake = types.SimpleNamespace(get=get, kill=lambda _: done.append("killed"), exceptions=ray.exceptions,
                                     wait=lambda refs, timeout: ([ref for ref in refs if ref is not None], []))
        with unittest.mock.patch.object(_machines, "ray", fake):
            _machines._stop(Actor())
        return done

    def test_an_actor_is_told_to_stop_until_it_has_taken_it(self):
        away = ray.exceptions.ActorUnavailableError("for a moment", None)
        self.assertEqual(self.stopping("taken"), ["told"])
        self.assertEqual(self.stopping(away, away, "taken"), ["told"] * 3)
        self.assertEqual(self.stopping(away, ray.exceptions.ActorDiedError()), ["told"] * 2)
        self.assertEqual(self.stopping(away), ["told", "told", "killed"], "it is not heard of again")

    def test_a_call_that_hangs_is_waited_for_so_long_and_no_second_one_is_begun(self):
        calls, gate, begun = BoundedCalls(0.05), threading.Event(), []

        def hang(subject):
            begun.append(subject)
            gate.wait()
        for _ in range(2):
            with self.assertRaisesRegex(TimeoutError, "^no answer to release a within 0.05 s$"):
                calls.call(("release", "a"), hang, "a")
        wait_for(lambda: begun, "the call to begin")
        self.assertEqual(begun, ["a"])
        patient = BoundedCalls(PATIENCE_S)
        self.assertEqual(patient.call(("release", "b"), str, 3), "3")
        with self.assertRaisesRegex(ValueError, "of Ray"):
            patient.call(("list",), unittest.mock.Mock(side_effect=ValueError("of Ray")))
        gate.set()
        wait_for(lambda: not calls._under_way, "the call to end")
        with unittest.mock.patch.object(calls, "_limit_s", PATIENCE_S):
            self.assertEqual(calls.call(("release", "a"), str, 3), "3")

    def test_a_program_ends_whatever_of_ray_hangs(self):
        program = ("import sys, threading, types\n"
                   "sys.modules['ray'] = types.SimpleNamespace(shutdown={shutdown})\n"
                   "from espalier.ray import _bounded\n"
                   "_bounded._LEAVE_S = {leave_s}\n"
                   "def end():\n    print('worked')\n    {end}\n"
                   "threading.Thread(target=threading.Event().wait).start()\n"  # another call
                   "_bounded.leave('espalier.ray serve', end)\n")
        late = "espalier.ray serve: Ray has not let go of it within 0.1 s\n"
        for end, shutdown, code, told in (
                ("return 3", "threading.Event().wait", 3, re.escape(late)), ("return 0", "lambda: None", 0, ""),
                ("return 0", "lambda: 1 / 0", 0, ""), ("raise KeyboardInterrupt", "lambda: None", 130, ""),
                ("sys.exit('why')", "threading.Event().wait", 1, f"why\n{re.escape(late)}"),
                ("raise OSError('why')", "threading.Event().wait", 1, f"Traceback[\\s\\S]*OSError: why\n{re.escape(late)}")):
            with self.subTest(end=end, shutdown=shutdown):
                leave_s = 0.1 if "wait" in shutdown else PATIENCE_S
                done = subprocess.run([sys.executable, "-c", program.format(end=end, shutdown=shutdown, leave_s=leave_s)],
                                      capture_output=True, text=True, timeout=PATIENCE_S)
                self.assertEqual((done.returncode, done.stdout), (code, "worked\n"), done.stderr)
                self.assertRegex(done.stderr, f"^{told}$")

    def test_a_question_that_ray_does_not_answer_is_answered(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        machines = types.SimpleNamespace(list=lambda prefix: gate.wait(), release=lambda key, now: None)
        with unittest.mock.patch.object(_machine_server, "ANSWER_S", 0.05):
            server = _machine_server.MachineServer(machines)
        self.addCleanup(server.close)
        ask = lambda **question: subprocess.run(server.program, input=f"{json.dumps(question)}\n",
                                                   capture_output=True, text=True, timeout=PATIENCE_S)
        done = ask(verb="list", prefix="espalier.x.")
        self.assertEqual((done.returncode, done.stderr), (1, "Ray: no answer to list espalier.x. within 0.05 s\n"))

    def test_a_service_that_does_not_end_is_killed_and_what_it_leaves_is_named(self):
        service = FOLDER / "service"
        service.write_text("#!/bin/sh\ntrap '' TERM\necho listens\nwhile :; do sleep 0.05; done\n")
        service.chmod(0o755)
        machines = types.SimpleNamespace(known=lambda: ["espalier.x.pool-1.y", "espalier.x.pool-2.z"])
        with open(FOLDER / "service.log", "w") as output, contextlib.redirect_stderr(io.StringIO()) as told, \
                unittest.mock.patch.object(_pool, "_END_S", 0.1), \
                unittest.mock.patch.object(_pool._run, "tuner_program", lambda: service):
            with _pool.Pool(machines, FOLDER / "pool", _pool.Terms("127.0.0.1", 1, 1), output) as pool:
                wait_for(lambda: (FOLDER / "service.log").read_text(), "the service")
                pool.stop()
                pool.stop()
                self.assertEqual(pool.wait(), 1)
        self.assertEqual(told.getvalue(), "espalier.ray: the service has not ended within 0.1 s and is killed; nodes that "
                                          "may be left: espalier.x.pool-1.y, espalier.x.pool-2.z\n")

    def test_results_stay_in_their_folder_and_the_newest_of_a_name_is_kept(self):
        folder = FOLDER / "unpacked"
        for name, text, mtime in (("a/model", "old", 10), ("a/model", "new", 20), ("a/model", "older", 5),
                                  ("../outside", "x", 10), ("/outside", "x", 10)):
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w") as tar:
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(text), mtime
                tar.addfile(member, io.BytesIO(text.encode()))
            _results.unpack(archive, folder)
        self.assertEqual((folder / "a/model").read_text(), "new")
        self.assertFalse((FOLDER / "outside").exists() or pathlib.Path("/outside").exists())


class Ray(RayTest):
    def setUp(self):
        super().setUp()
        for _ in range(NODES - len(self.cluster.machines)):
            self.cluster.add()

    # ---- what there is

    def serve_ray(self, *options, tuner=()):
        service = self.python("espalier.ray", "serve", "--address", self.cluster.address, "--max-nodes", NODES, "--cpus",
                              2, "--scratch-dir", self.dir / "scratch", *options, "--", "--node-start", "2", *tuner)
        wait_for(lambda: "gRPC " in self.output(service) or service.poll() is not None, "the service")
        self.assertIsNone(service.poll(), self.output(service))
        token = self.dir / "espalier-ray/pool.db.credentials/administer.token"
        self.client = Client(f"{cluster.ADDRESS}:7078", token_file=token)
        self.addCleanup(self.client.close)
        return service

    def connected(self):
        return sorted(node["name"] for node in self.client.pool().get("nodes", []) if node["connected"])

    def all_nodes(self):
        """Whether there is exactly what is wanted, and each on a machine of its own."""
        return len(self.connected()) == len(self.actors()) == len(self.agents()) == NODES

    def wait_for_all_nodes(self, what, also=lambda: True):
        try:
            wait_for(lambda: self.all_nodes() and also(), what)
        except AssertionError as error:
            raise AssertionError(f"{error}; connected: {self.connected()}, actors: {self.actors()}, agents: "
                                 f"{[*self.agents()]}, pool: {self.client.pool()}, of Ray: {ray.nodes()}, free there: "
                                 f"{ray.available_resources()}") from None

    def assert_nothing_left(self):
        """Once the service has ended, which has waited for Ray's actors. Agents end with them."""
        self.assertEqual(self.actors(), [])
        wait_for(lambda: not self.agents(), "no agent to be left")

    def steps(self):
        return sum(trial["step"] or 0 for trial in self.client.trials("e2e", values=False))

    def endless(self):
        script = self.resumable_trial(100_000, 0.2)
        self.client.submit(self.study([script], trials=2 * NODES))

    # ---- tests

    def test_a_study_comes_with_its_nodes_and_its_results_and_nothing_stays(self):
        code = self.dir / "code"
        code.mkdir()
        go_on = self.dir / "go-on"
        (code / "trial.sh").write_text("for i in 1 2 3 4 5; do tuner tell --step $i --value 0.$i; done\n"
                                       f"until [ -e {go_on} ]; do sleep 0.1; done\n"
                                       "pwd > seen-by-$ESPALIER_TRIAL_NUMBER\n")
        (code / "study.json").write_text(pathlib.Path(self.study(["sh", "trial.sh"], trials=6)).read_text())
        record = self.dir / "record"
        name = f"run-{hashlib.sha256(os.fsencode(record.absolute())).hexdigest()[:12]}"
        self.nodes_folder = pathlib.Path(default_root(name))
        run = self.python("espalier.ray", "run", "study.json", "--address", self.cluster.address, "--dir", record,
                          "--max-nodes", NODES, "--cpus", 2, "--runtime-env", json.dumps({"working_dir": "."}), "--",
                          "--node-start", 1, cwd=code)
        wait_for(lambda: len(self.agents()) == NODES, "an agent on each machine")
        token = (record / "nodes/join.token").read_text()
        self.assertTrue(token)
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            for file in ("cmdline", "environ"):
                try:
                    self.assertNotIn(token, (entry / file).read_bytes().decode(errors="replace"))
                except OSError:
                    continue
        go_on.touch()
        # One after the other: the trials, their results, the end of nodes and service.
        done = lambda seen: all((seen / f"seen-by-{number}").exists() for number in range(6))
        for seen, what in ((self.nodes_folder / "work", "trials to end"), (record / "results", "results to come back")):
            wait_for(lambda: done(seen) or done(record / "results") or run.poll() is not None, what)
        self.finish(run)
        printed = self.output(run)
        self.assertRegex(printed, r"best: 0\.5 of trial \d")
        self.assertEqual(len((record / "trials.csv").read_text().splitlines()), 1 + 6 * 5)
        for number in range(6):
            self.assertIn("/work", (record / f"results/seen-by-{number}").read_text())
        self.assert_nothing_left()
        self.assertFalse(self.nodes_folder.exists(), "nodes clean up")

    def test_nodes_are_taken_over_replaced_and_given_back(self):
        of_two_gpus = ("--gpus", "2", "--slots", "2")
        service = self.serve_ray(*of_two_gpus)
        self.endless()
        self.wait_for_all_nodes("all nodes")
        self.assertEqual(len({actor["name"] for actor in self.actors()}), NODES)
        before = self.agents()
        for pid in before:
            self.assertIn("CUDA_VISIBLE_DEVICES=0,1\0", pathlib.Path(f"/proc/{pid}/environ").read_text())
        # The program that speaks with Ray dies, and its service with it; agents and trials do not.
        service.kill()
        service.wait()
        wait_for(lambda: not [words for _, _, words in processes() if words[1:2] == ["serve"]], "no service alone")
        self.assertEqual(self.agents().keys(), before.keys())
        service = self.serve_ray(*of_two_gpus)
        self.wait_for_all_nodes("the nodes again")
        self.assertEqual(self.agents().keys(), before.keys(), "the same ones")
        wait_for(lambda: self.output(service).count("event=machine_taken_over") == NODES, "the engine to say so")
        done = self.steps()
        wait_for(lambda: self.steps() > done, "trials to go on")
        # An actor is killed: its agent ends with it, and another one comes.
        agent, parent = next((pid, parent) for pid, parent, _ in processes() if pid in before)
        self.assertTrue(kill(parent))
        wait_for(lambda: agent not in self.agents(), "the agent to end with its actor")
        self.wait_for_all_nodes("another node", lambda: self.agents().keys() != before.keys())
        service.terminate()
        self.finish(service)
        self.assert_nothing_left()

    def test_a_lost_machine_is_noticed_before_ray_notices(self):
        service = self.serve_ray()
        self.endless()
        self.wait_for_all_nodes("all nodes")
        alive = lambda: sum(node["Alive"] for node in ray.nodes())
        there = alive()
        lost = self.cluster.machines[0]
        self.cluster.kill(lost)
        wait_for(lambda: len(self.connected()) == NODES - 1, "the lease to end")
        self.assertEqual(alive(), there, "Ray takes it for alive")
        wait_for(lambda: not self.waiting_for_lost(), "its trials to be taken off it")
        done = self.steps()
        wait_for(lambda: self.steps() > done, "trials to go on elsewhere")
        self.cluster.notice(lost)
        wait_for(lambda: alive() == there - 1, "Ray to know it")
        self.cluster.add()
        self.wait_for_all_nodes("a node on another machine")
        service.terminate()
        self.finish(service)
        self.assert_nothing_left()

    def waiting_for_lost(self):
        return [node for node in self.client.pool()["nodes"] if not node["connected"] and node.get("holders")]

    def test_what_is_wrong_is_told_in_a_line(self):
        (self.dir / "other.token").write_text("0" * 64)
        study = self.study(["true"])
        run = lambda address, env=None: self.python("espalier.ray", "run", study, "--address", address, "--max-nodes", 1,
                                                    env=env)
        # Ray connects again and again, and as patiently as tests are.
        other_token = run(self.cluster.address, {"RAY_AUTH_TOKEN_PATH": str(self.dir / "other.token"),
                                                 "RAY_gcs_server_port_wait_time_s": "3",
                                                 "RAY_gcs_rpc_server_connect_timeout_s": "5"})
        no_token = run(self.cluster.address, {"RAY_AUTH_TOKEN_PATH": "/nowhere"})
        for process, expected in ((run(f"{cluster.ADDRESS}:1"), f"no Ray cluster answers at {cluster.ADDRESS}:1"),
                                  (run("somewhere"), "address 'somewhere': must be HOST:PORT"), (no_token, "/nowhere")):
            self.finish(process, code=2)
            self.assertRegex(self.output(process), rf"\Aespalier.ray run: .*{expected}.*\n\Z")
        service = self.serve_ray("--resource", "unobtainium=1", tuner=("--min-nodes", "1"))
        wait_for(lambda: "Ray has no node with 2 CPU, 1 unobtainium" in " ".join(self.client.pool().get("warnings", [])),
                 "the warning")
        service.terminate()
        self.finish(service)
        self.assertEqual(self.actors(), [])
        self.finish(other_token, code=2)
        self.assertRegex(self.output(other_token), r"\Aespalier.ray run: Ray at .*: is the token its own.*\n\Z")

    def test_a_script_runs_elastically_and_its_results_come_back(self):
        code = self.dir / "code"
        code.mkdir()
        (code / "train.py").write_text(JOB)
        go_on = self.dir / "go-on"
        (self.dir / "shared").mkdir()
        job = self.python("espalier.ray._on_ray", "-u", self.cluster.client_address, "-f", "train.py", "-m", NODES,
                          "--gpus", 0, "--cpus", 2, "-d", code, "--shared-dir", self.dir / "shared",
                          "--checkpoint-timeout", 60, "--", go_on)
        # Four processes start one after the other until then, two of which import torch.
        wait_for(lambda: "has an epoch" in self.output(job) or job.poll() is not None, "its log", 2 * PATIENCE_S)
        self.assertIsNone(job.poll(), self.output(job))
        agents = self.agents()
        self.assertTrue(kill(next(parent for pid, parent, _ in processes() if pid in agents)), "a spot node")
        wait_for(lambda: len(agents.keys() & self.agents().keys()) < len(agents), "its agent to end")
        epochs = self.output(job).count("has an epoch")
        wait_for(lambda: self.output(job).count("has an epoch") > epochs + 10 or job.poll() is not None, "it to go on")
        self.assertIsNone(job.poll(), self.output(job))
        go_on.touch()
        self.finish(job)
        self.assertIn("it has trained", self.output(job))
        results = self.dir / "espalier-runs/train"
        self.assertRegex((results / "model.txt").read_text(), r"\d+ epochs")
        self.assertTrue(list(results.glob("train/trial-0/replica-*.log")))
        self.assertEqual(list(results.rglob("*.token")), [])
        wait_for(lambda: not self.actors() and not self.agents(), "nothing to be left")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    unittest.main()
