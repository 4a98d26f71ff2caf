"""One study, worked on by Optuna programs and by programs that speak HTTP."""
import environment

environment.run_inside(__file__)

import http.client
import itertools
import json
import math
import random
import unittest

import grpc
import optuna
from optuna.storages import GrpcStorageProxy
from optuna.trial import TrialState

from harness import TunerTest

optuna.logging.set_verbosity(optuna.logging.ERROR)

SPACE = {"lr": {"_type": "loguniform", "_value": [1e-5, 1]}, "layers": {"_type": "randint", "_value": [1, 9]},
         "rule": {"_type": "choice", "_value": ["linear", 0.5, True]}}


def suggest(trial):
    return {"lr": trial.suggest_float("lr", 1e-5, 1, log=True), "layers": trial.suggest_int("layers", 1, 8),
            "rule": trial.suggest_categorical("rule", ["linear", 0.5, True])}


class HttpTest(TunerTest):
    def setUp(self):
        super().setUp()
        self.serve(self.dir / "studies.db")
        self.connection = http.client.HTTPConnection(self.http, timeout=60)

    def tearDown(self):
        self.connection.close()
        super().tearDown()

    def call(self, path, method="POST", **body):
        self.connection.request(method, "/api/" + path, json.dumps(body) if method == "POST" else None)
        reply = self.connection.getresponse()
        text = reply.read().decode()
        self.assertLess(reply.status, 300, text)
        return json.loads(text)


class SharedStudy(HttpTest):
    def setUp(self):
        super().setUp()
        self.call("studies", name="shared", ask_and_tell=True, search_space=SPACE, sampler="random")
        host, port = self.grpc.rsplit(":", 1)
        storage = GrpcStorageProxy(host=host, port=int(port))
        storage.wait_server_ready(timeout=60)
        self.study = optuna.load_study(study_name="shared", storage=storage, sampler=optuna.samplers.TPESampler(seed=1))

    def tell(self, trial, value):
        self.call(f"trials/{trial['trial_id']}/tell", state="complete", value=value)

    def test_what_was_asked_by_http_is_seen_by_optuna(self):
        for i in range(5):
            trial = self.call("studies/shared/ask")
            self.call(f"trials/{trial['trial_id']}/report", step=1, value=2 * i)
            self.call(f"trials/{trial['trial_id']}/attributes", user={"i": i})
            self.tell(trial, i)
            seen = self.study.trials[i]
            self.assertEqual(seen.params, trial["parameters"])
            self.assertEqual([type(v) for v in seen.params.values()], [type(trial["parameters"][k]) for k in seen.params])
            self.assertEqual((seen.value, seen.intermediate_values, seen.user_attrs), (i, {1: 2 * i}, {"i": i}))
            self.assertEqual(seen.distributions["layers"], optuna.distributions.IntDistribution(1, 8))
            self.assertEqual(seen.distributions["lr"], optuna.distributions.FloatDistribution(1e-5, 1, log=True))
        self.assertEqual(self.study.best_trial.number, 0)
        # Its sampler learns from them, and draws from the same distributions.
        self.study.optimize(lambda trial: suggest(trial)["lr"], n_trials=15)
        best = self.call("studies/shared/best", "GET")
        self.assertEqual(best["number"], self.study.best_trial.number)
        self.assertEqual(best["parameters"], self.study.best_params)

    def test_our_sampler_learns_from_optunas_trials(self):
        self.call("studies", name="grid", ask_and_tell=True, sampler="random",
                  search_space={"rule": {"_type": "choice", "_value": ["a", "b", "c"]}})
        study = optuna.load_study(study_name="grid", storage=self.study._storage)
        for tried in range(2):
            trial = study.ask()
            self.study._storage.set_trial_param(trial._trial_id, "rule", tried,
                                                optuna.distributions.CategoricalDistribution(("a", "b", "c")))
            study.tell(trial, 1)
        self.assertEqual(self.call("studies/grid/ask")["parameters"], {"rule": "c"}, "what is left to try")

    def test_both_put_trials_in_line_for_both(self):
        self.study.enqueue_trial({"lr": 0.5, "rule": True}, user_attrs={"from": "optuna"})
        queued = self.call("studies/shared/enqueue", parameters={"layers": 7}, user_attributes={"from": "http"})
        self.assertEqual(queued["state"], "TRIAL_WAITING")
        first = self.call("studies/shared/ask")
        self.assertEqual((first["number"], first["parameters"]["lr"], first["parameters"]["rule"]), (0, 0.5, True))
        self.assertEqual(first["user_attributes"], {"from": "optuna"})
        second = self.study.ask()
        self.assertEqual((second.number, suggest(second)["layers"]), (1, 7))
        self.assertEqual(second.user_attrs, {"from": "http"})
        self.tell(first, 1)
        self.study.tell(second, 2)
        self.assertEqual([t.state for t in self.study.trials], [TrialState.COMPLETE] * 2)

    def test_a_study_of_optunas_is_told_by_http(self):
        study = optuna.create_study(study_name="theirs", storage=self.study._storage)
        trial = study.ask()
        x = trial.suggest_float("x", 0, 1)
        record = self.call(f"trials/{trial._trial_id}", "GET")
        self.assertEqual((record["study"], record["parameters"]), ("theirs", {"x": x}))
        self.call(f"trials/{trial._trial_id}/report", value=3)
        self.call(f"trials/{trial._trial_id}/tell", state="pruned")
        self.assertEqual((study.trials[0].state, study.trials[0].value), (TrialState.PRUNED, 3))
        self.connection.request("POST", "/api/studies/theirs/ask")
        reply = self.connection.getresponse()
        self.assertEqual((reply.status, "search space" in reply.read().decode()), (409, True))

    def test_a_repeated_creation_gives_the_same_trial(self):
        from optuna.storages._grpc.auto_generated import api_pb2, api_pb2_grpc
        stub = api_pb2_grpc.StorageServiceStub(grpc.insecure_channel(self.grpc))
        request = api_pb2.CreateNewTrialRequest(study_id=self.study._study_id, template_trial_is_none=True)

        def create(key):
            return stub.CreateNewTrial(request, metadata=[("idempotency-key", key)]).trial_id
        self.assertEqual(create("a"), create("a"))
        self.assertNotEqual(create("a"), create("b"))
        create_study = api_pb2.CreateNewStudyRequest(study_name="once", directions=[0])
        ids = {stub.CreateNewStudy(create_study, metadata=[("idempotency-key", "s")]).study_id for _ in range(2)}
        self.assertEqual(len(ids), 1)


class Median(HttpTest):
    """The verdicts of `median` are those of Optuna's MedianPruner at equal options."""

    def compare(self, name, direction, warmup, interval, first_step):
        draw = random.Random(name)
        self.call("studies", name=name, ask_and_tell=True, metric={"name": "loss", "direction": direction},
                  search_space={"x": {"_type": "uniform", "_value": [0, 1]}}, sampler="random",
                  pruner={"name": "median", "warmup_steps": warmup, "interval": interval, "startup_trials": 3})
        theirs = optuna.create_study(direction=direction, pruner=optuna.pruners.MedianPruner(3, warmup, interval))
        pruned = 0
        for _ in range(12):
            trial, ours = theirs.ask(), self.call(f"studies/{name}/ask")["trial_id"]
            told = []
            for step in sorted(draw.sample(range(first_step, first_step + 8), 6)):
                told.append(math.nan if told and draw.random() < 0.2 else draw.random() / (step + 1))
                trial.report(told[-1], step)
                verdict = self.call(f"trials/{ours}/report", step=step, value=str(told[-1]) if math.isnan(told[-1]) else told[-1])
                self.assertEqual(verdict["prune"], trial.should_prune(), f"{name}, step {step} of {told}: {verdict}")
                if verdict["prune"]:
                    break
            if verdict["prune"]:
                pruned += 1
                theirs.tell(trial, state=TrialState.PRUNED)
                self.call(f"trials/{ours}/tell", state="pruned")
            else:
                theirs.tell(trial, told[0])
                self.call(f"trials/{ours}/tell", state="complete", value=told[0])
        return pruned

    def test_verdicts_are_optunas(self):
        pruned = [self.compare(f"{direction}-{warmup}-{interval}-{first}", direction, warmup, interval, first)
                  for direction, warmup, interval, first
                  in itertools.product(("minimize", "maximize"), (0, 1, 3), (1, 2), (0, 1))]
        self.assertGreater(sum(pruned), 2 * len(pruned))


if __name__ == "__main__":
    unittest.main()
