"""Plain Optuna programs on our service, and what the CLI shows of them."""
import environment

environment.run_inside(__file__)

import concurrent.futures
import contextlib
import json
import math
import multiprocessing
import socket
import sys
import threading
import unittest
import urllib.request

sys.path.insert(0, str(environment.ROOT / "adapters" / "optuna" / "python"))

import espalier_optuna
import grpc
import optuna
from optuna.storages import GrpcStorageProxy
from optuna.trial import TrialState

from harness import TunerTest, wait_for

optuna.logging.set_verbosity(optuna.logging.ERROR)


def storage_at(address):
    host, port = address.rsplit(":", 1)
    storage = GrpcStorageProxy(host=host, port=int(port))
    storage.wait_server_ready(timeout=60)
    return storage


def objective(trial):
    x = trial.suggest_float("x", -3, 3)
    layers = trial.suggest_int("layers", 1, 8)
    rule = trial.suggest_categorical("rule", ["linear", None, 0.5, True])
    for step in range(4):
        trial.report((x - 1) ** 2 + layers / (step + 1), step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    trial.set_user_attr("rule was", str(rule))
    return (x - 1) ** 2 + layers


def work(address, trials):
    optuna.load_study(study_name="shared", storage=storage_at(address)).optimize(objective, n_trials=trials)


class Clients(TunerTest):
    def setUp(self):
        super().setUp()
        self.serve(self.dir / "optuna.db")

    def test_a_plain_study_and_the_command_line(self):
        study = optuna.create_study(study_name="plain", storage=storage_at(self.grpc),
                                    sampler=optuna.samplers.TPESampler(seed=1),
                                    pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
        study.set_user_attr("team", "a")
        study.optimize(objective, n_trials=30)
        states = [t.state for t in study.trials]
        self.assertIn(TrialState.COMPLETE, states)
        self.assertIn(TrialState.PRUNED, states)
        record = self.export("--service", self.grpc, study="plain")
        self.assertTrue(record["study"]["ask_and_tell"])
        self.assertEqual(record["study"]["user_attributes"], {"team": '"a"'})
        self.assertEqual(int(record["study"]["best_trial"]), study.best_trial.number)
        self.assertAlmostEqual(record["study"]["best_value"], study.best_value)
        for ours, theirs in zip(record["trials"], study.trials):
            self.assertEqual(ours["state"], f"TRIAL_{theirs.state.name}")
            shown = {p["name"]: json.loads(p["json"]) for p in ours["parameters"]}
            self.assertEqual({k: "null" if v is None else v for k, v in theirs.params.items()}, shown)
        self.assertIn("plain", self.run_tuner("ls", "--service", self.grpc).stdout)
        self.assertIn("layers", self.run_tuner("show", "plain", "--service", self.grpc).stdout)
        self.run_tuner("rm", "plain", "--service", self.grpc)
        with self.assertRaises(KeyError):
            optuna.load_study(study_name="plain", storage=storage_at(self.grpc))

    def test_several_objectives_and_values_that_are_not_finite(self):
        storage = storage_at(self.grpc)
        study = optuna.create_study(study_name="two", storage=storage, directions=["minimize", "maximize"])

        def two(trial):
            x = trial.suggest_float("x", 0, 1, log=False)
            return x, math.inf if x > 0.5 else -x

        study.optimize(two, n_trials=10)
        again = optuna.load_study(study_name="two", storage=storage_at(self.grpc))
        self.assertEqual([t.values for t in again.trials], [t.values for t in study.trials])
        self.assertEqual(len(again.best_trials), len(study.best_trials))
        self.run_tuner("show", "two", "--service", self.grpc)

    def test_queued_trials_are_popped_once(self):
        study = optuna.create_study(study_name="queue", storage=storage_at(self.grpc))
        for i in range(24):
            study.enqueue_trial({"x": i})
        seen = []

        def pop(_):
            own = optuna.load_study(study_name="queue", storage=storage_at(self.grpc))
            own.optimize(lambda trial: seen.append(trial.suggest_float("x", 0, 100)) or 0.0, n_trials=6)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(pop, range(4)))
        self.assertEqual(sorted(seen), [float(i) for i in range(24)])

    def test_many_processes_share_a_study(self):
        optuna.create_study(study_name="shared", storage=storage_at(self.grpc))
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=work, args=(self.grpc, 10)) for _ in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            self.assertEqual(process.exitcode, 0)
        trials = optuna.load_study(study_name="shared", storage=storage_at(self.grpc)).trials
        self.assertEqual([t.number for t in trials], list(range(40)))
        self.assertTrue(all(t.state in (TrialState.COMPLETE, TrialState.PRUNED) for t in trials))

    def test_the_limits_of_a_study_file_hold(self):
        self.run_tuner("submit", self.write("limits.json", {
            "name": "limited", "ask_and_tell": True, "trials": 3, "max_concurrent_trials": 2,
            "metric": {"name": "loss", "direction": "minimize"}}), "--service", self.grpc)
        study = optuna.load_study(study_name="limited", storage=storage_at(self.grpc))

        def refused(code, message):
            with self.assertRaises(grpc.RpcError) as raised:
                study.ask()
            self.assertEqual(raised.exception.code(), code)
            self.assertIn(message, raised.exception.details())

        first, second = study.ask(), study.ask()
        refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "as many trials as it may at a time (2)")
        study.tell(first, 1.0)
        study.add_trial(optuna.create_trial(value=0.5))  # the third
        refused(grpc.StatusCode.FAILED_PRECONDITION, "has all its 3 trials")
        study.tell(second, 2.0)
        refused(grpc.StatusCode.FAILED_PRECONDITION, "is COMPLETE")
        self.assertEqual(len(study.trials), 3)

    def test_a_study_of_the_pool_opens_in_optuna(self):
        self.agent(2)
        script = self.write("trial.sh", "#!/bin/bash\ntuner tell --step 1 --value 0.5\ntuner tell --value 0.25 --final\n",
                            0o755)
        study_file = self.study([script], trials=3, search_space={
            "lr": {"_type": "loguniform", "_value": [1e-5, 1]}, "rule": {"_type": "choice", "_value": ["a", 2]}})
        self.run_tuner("submit", study_file, "--service", self.grpc, "--wait")
        study = optuna.load_study(study_name="e2e", storage=storage_at(self.grpc))
        self.assertEqual([t.state for t in study.trials], [TrialState.COMPLETE] * 3)
        self.assertEqual(study.best_value, 0.25)
        self.assertEqual(set(study.trials[0].params), {"lr", "rule"})
        study.set_user_attr("seen", True)
        self.assertEqual(study.user_attrs, {"seen": True})


    def test_trials_of_the_pool_without_a_value_disturb_nobody(self):
        """A job's, and that of a queue whose program tells no value."""
        self.agent(2)
        job = self.study(["true"], name="job", metric=False, search_space=None, trials=1)
        self.run_tuner("submit", job, "--service", self.grpc, "--wait")
        script = self.write("trial.sh", "#!/bin/bash\n"
                            "if [ $ESPALIER_PARAM_X = 1 ]; then tuner tell --value 0.5 --final; fi\n", 0o755)
        queue = self.study([script], name="queue", sampler="queue", search_space=None, trials=None)
        self.run_tuner("submit", queue, "--service", self.grpc)
        for x in (0, 1):
            urllib.request.urlopen(f"http://{self.http}/api/studies/queue/enqueue",
                                   json.dumps({"parameters": {"x": x}}).encode()).close()
        where = ("--service", self.grpc)
        wait_for(lambda: [t["state"] for t in self.export(*where, study="queue")["trials"]] == ["TRIAL_COMPLETE"] * 2,
                 "both trials to complete")
        file = self.dir / "exported.db"
        told = self.run_tuner("db", "export-optuna", self.dir / "optuna.db", file).stdout
        self.assertIn("completed without a value, and FAIL in Optuna's file: 1 trial", told)
        for storage in (storage_at(self.grpc), f"sqlite:///{file}"):
            summaries = {s.study_name: s for s in optuna.get_all_study_summaries(storage)}
            self.assertEqual(summaries["queue"].best_trial.value, 0.5)
            self.assertIsNone(summaries["job"].best_trial)
            study = optuna.load_study(study_name="queue", storage=storage)
            self.assertEqual([t.state for t in study.trials], [TrialState.FAIL, TrialState.COMPLETE])
            self.assertEqual(study.best_trial.number, 1)
            self.assertEqual([t.params for t in study.trials], [{"x": 0}, {"x": 1}])
        self.assertEqual(study.trials[0].distributions["x"], optuna.distributions.IntDistribution(0, 1), "of the file")


class SilentClients(TunerTest):
    LEASE_S = 20  # longer than a busy machine keeps a client that lives from its word

    def test_the_trial_of_a_killed_client_is_run_by_another(self):
        self.serve(self.dir / "optuna.db", options=["--client-lease", self.LEASE_S, "--client-retries", "1"])
        study = optuna.create_study(study_name="lost", storage=storage_at(self.grpc))
        lost = study.ask()
        x = lost.suggest_float("x", 0, 1)
        wait_for(lambda: study.trials[0].state == TrialState.FAIL, "the silent client's trial to fail")
        seen = []
        study.optimize(lambda trial: seen.append(trial.suggest_float("x", 0, 1)) or 0.0, n_trials=1)
        self.assertEqual(len(study.trials), 2, "the queued trial was taken")
        again = study.trials[1]
        self.assertEqual(again.state, TrialState.COMPLETE)
        self.assertEqual(again.params, {"x": x})
        self.assertEqual(optuna.storages.RetryHeartbeatStaleTrialCallback.retried_trial_number(again)
                         if hasattr(optuna.storages, "RetryHeartbeatStaleTrialCallback") else
                         again.system_attrs["failed_trial"], 0)
        with self.assertRaises(optuna.exceptions.UpdateFinishedTrialError):
            lost.report(1.0, 1)

    def test_options_that_make_no_sense_are_named(self):
        done = self.run_tuner("serve", "--db", self.dir / "x.db", "--client-retries", "1", code=2)
        self.assertIn("--client-retries 1", done.stderr)
        done = self.run_tuner("serve", "--db", self.dir / "x.db", "--client-lease", "-3", code=2)
        self.assertIn("--client-lease -3", done.stderr)



class Handshakes(unittest.TestCase):
    """What a service is that does not agree on TLS, where the token holds the hash of its certificate."""

    def error_of(self, answer):
        """The error of a client that is answered these bytes, and then cut off."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def cut_off():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(answer)

        threading.Thread(target=cut_off, daemon=True).start()
        token = "esp1.00000000." + "0" * 64 + "." + "0" * 64
        with self.assertRaises(ConnectionError) as raised:
            espalier_optuna.storage(f"127.0.0.1:{listener.getsockname()[1]}", token=token, retry_s=0.5)
        return str(raised.exception)

    def test_one_that_breaks_off_is_told_from_one_without_tls(self):
        self.assertIn("broke the connection off", self.error_of(b""))
        # The first frame of HTTP/2, as a service sends it that was started with --plaintext.
        self.assertIn("speaks no TLS", self.error_of(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])))


if __name__ == "__main__":
    unittest.main()
