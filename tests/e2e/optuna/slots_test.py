"""Optuna's objectives take slots of the pool, beside the tuner's own trials."""
import environment

environment.run_inside(__file__)

import http.client
import json
import multiprocessing
import os
import signal
import sys
import time
import unittest
import unittest.mock

sys.path.insert(0, str(environment.ROOT / "adapters" / "optuna" / "python"))

import espalier_optuna
import optuna
from optuna.trial import TrialState

from harness import PATIENCE_S, TunerTest, kill, wait_for

optuna.logging.set_verbosity(optuna.logging.ERROR)
CONTEXT = multiprocessing.get_context("spawn")
LEASE_S = 20  # of slots: longer than a busy machine keeps a client that lives from its word
NODES = ("--lease", 60)  # and agents


def work(address, trials, slots, seconds):
    study = optuna.load_study(study_name="shared", storage=espalier_optuna.storage(address))

    def objective(trial):
        with espalier_optuna.slots(trial, slots) as held:
            assert len(held.slots) == slots and held.lost is None
            time.sleep(seconds)
        return trial.suggest_float("x", 0, 1)

    study.optimize(objective, n_trials=trials)


def hold_for_ever(address, holds):
    study = optuna.load_study(study_name="shared", storage=espalier_optuna.storage(address))
    trial = study.ask()
    with espalier_optuna.slots(trial, 2) as held:
        holds.put((trial.number, [(slot.node, slot.index) for slot in held.slots]))
        time.sleep(600)


def overlaps(trials):
    """Pairs of trials that held one slot at the same time."""
    spans = [(slot["node_id"], slot["index"], span["from"], span["to"] or float("inf"), name)
             for name, trial in trials for span in trial["spans"] for slot in span["slots"]]
    spans.sort()
    return [(a, b) for a, b in zip(spans, spans[1:]) if a[:2] == b[:2] and b[2] < a[3] - 1e-6]


class Slots(TunerTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve(self.dir / "slots.db", options=["--slot-lease", LEASE_S, *NODES])
        self.storage = espalier_optuna.storage(self.grpc)
        self.study_ = optuna.create_study(study_name="shared", storage=self.storage)

    def held(self):
        pool = self.run_tuner("pool", "--service", self.grpc).stdout
        return int(pool.split()[0])

    def trials_of(self, study):
        return [(f"{study}/{t['number']}", t) for t in self.export("--service", self.grpc, study=study)["trials"]]

    def test_two_programs_share_the_pool_with_a_study_of_ours(self):
        self.agent(4)
        script = self.write("trial.sh", "#!/bin/bash\nfor i in 1 2 3 4; do tuner tell --step $i --value 0.$i; sleep 0.2; done\n",
                            0o755)
        self.run_tuner("submit", self.study([script], trials=100_000), "--service", self.grpc)
        processes = [CONTEXT.Process(target=work, args=(self.grpc, 3, 2, 0.4)) for _ in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            self.assertEqual(process.exitcode, 0)
        self.run_tuner("stop", "e2e", "--service", self.grpc)
        wait_for(lambda: self.held() == 0, "our trials to leave")
        theirs, ours = self.trials_of("shared"), self.trials_of("e2e")
        self.assertEqual(len(theirs), 6)
        self.assertEqual({t["state"] for _, t in theirs}, {"TRIAL_COMPLETE"})
        self.assertLessEqual({t["state"] for _, t in ours}, {"TRIAL_COMPLETE", "TRIAL_PAUSED", "TRIAL_WAITING"})
        self.assertTrue(all(len(span["slots"]) == 2 for _, t in theirs for span in t["spans"]), "rigid")
        self.assertEqual(overlaps(theirs + ours), [])
        beside = [name for name, t in ours for span in t["spans"] for _, o in theirs for held in o["spans"]
                  if span["from"] < held["to"] and held["from"] < span["to"]]
        self.assertTrue(beside, "ours trained while theirs held slots")
        reasons = [d["reason"] for d in self.export("--service", self.grpc, study="shared")["decisions"]]
        self.assertEqual(sum("its client asked for 2 slots" in r for r in reasons), 6)

    def test_a_killed_holder_gives_back_after_its_lease(self):
        self.agent(2)
        holds = CONTEXT.Queue()
        holder = CONTEXT.Process(target=hold_for_ever, args=(self.grpc, holds))
        holder.start()
        holds.get(timeout=PATIENCE_S)
        self.assertEqual(self.held(), 2)
        kill(holder.pid)
        holder.join()
        work(self.grpc, 1, 2, 0)
        reasons = [d["reason"] for d in self.export("--service", self.grpc, study="shared")["decisions"]]
        self.assertIn(f"its client was silent for {LEASE_S} s", reasons)

    def test_a_hold_outlives_a_killed_service(self):
        self.agent(2)
        holds = CONTEXT.Queue()
        holder = CONTEXT.Process(target=hold_for_ever, args=(self.grpc, holds))
        holder.start()
        number, slots = holds.get(timeout=PATIENCE_S)
        kill(self.service.pid)
        self.service.wait()
        self.serve(self.dir / "slots.db", self.grpc, self.http, ["--slot-lease", LEASE_S, *NODES])
        wait_for(lambda: "its client's" in self.run_tuner("pool", "--service", self.grpc).stdout, "the node to come back")
        waiting = self.study_.ask()
        with self.assertRaises(espalier_optuna.SlotsTimeout):
            with espalier_optuna.slots(waiting, 1, timeout=1.5 * LEASE_S):
                self.fail("somebody else holds them")
        trial = self.trials_of("shared")[number][1]
        self.assertEqual(len(trial["spans"]), 1, "one span, before and after")
        self.assertEqual(trial["spans"][0]["to"], 0)
        kill(holder.pid, signal.SIGKILL)
        holder.join()
        with espalier_optuna.slots(waiting, 1, timeout=PATIENCE_S) as held:
            self.assertIn((held.slots[0].node, held.slots[0].index), slots)

    def test_a_stopped_client_learns_that_its_slots_are_gone(self):
        self.agent(1)
        with espalier_optuna.slots(self.study_.ask(), 1) as held:
            held._release(espalier_optuna._slots._messages.TrialSlotsRequest(trial_id=held._trial_id))
            wait_for(lambda: held.lost, "the renewal to be refused")
            with self.assertRaises(espalier_optuna.SlotsLost):
                held.check()

    def test_what_cannot_be_is_said(self):
        self.agent(1)
        wait_for(lambda: "0 of 1" in self.run_tuner("pool", "--service", self.grpc).stdout, "the node")
        trial = self.study_.ask()
        with self.assertRaisesRegex(espalier_optuna.SlotsRefused, 'no node "elsewhere"'):
            espalier_optuna.slots(trial, 1, node="elsewhere").__enter__()
        with self.assertRaisesRegex(espalier_optuna.SlotsTimeout, "more nodes must join"):
            espalier_optuna.slots(trial, 2, timeout=0.2).__enter__()
        with self.assertRaises(ValueError):
            espalier_optuna.slots(trial, 0)
        with self.assertRaises(TypeError):
            espalier_optuna.slots(optuna.create_study().ask(), 1)
        with self.assertRaises(optuna.TrialPruned):
            with espalier_optuna.slots(trial, 1):
                raise optuna.TrialPruned()
        self.assertEqual(self.held(), 0)
        self.study_.tell(trial, 1.0)
        with self.assertRaisesRegex(espalier_optuna.SlotsRefused, "has ended"):
            espalier_optuna.slots(trial, 1).__enter__()

    def by_http(self, method, trial, body=None, code=200):
        connection = http.client.HTTPConnection(self.http, timeout=60)
        self.addCleanup(connection.close)
        connection.request(method, f"/api/trials/{trial._trial_id}/slots", body and json.dumps(body))
        reply = connection.getresponse()
        text = reply.read().decode()
        self.assertEqual(reply.status, code, text)
        return json.loads(text)

    def test_by_http(self):
        self.agent(2)
        wait_for(lambda: "0 of 2" in self.run_tuner("pool", "--service", self.grpc).stdout, "the node")
        first, second = self.study_.ask(), self.study_.ask()
        held = self.by_http("POST", first, {"slots": 2, "node": "node"})
        self.assertEqual([(s["node"], s["index"], s["gpu"]) for s in held["slots"]], [("node", 0, None), ("node", 1, None)])
        self.assertEqual(held["lease_s"], LEASE_S)
        self.assertIn("hold 2 of the 2 slots", self.by_http("POST", second, {"slots": 1}, 202)["waits_for"])
        self.assertEqual(self.by_http("POST", first, {"slots": 2})["slots"], held["slots"], "renewed")
        self.assertIn("elsewhere", self.by_http("POST", second, {"slots": 1, "node": "elsewhere"}, 404)["error"])
        self.assertIn("wait_s", self.by_http("POST", second, {"slots": 1, "wait_s": 5}, 400)["error"])
        self.by_http("DELETE", first)
        self.assertEqual(len(self.by_http("POST", second, {"slots": 1})["slots"]), 1)


class Storage(TunerTest):
    def test_the_token(self):
        token = self.write("token", "a-secret-of-ours\n", 0o600)
        with unittest.mock.patch.dict(os.environ, {"ESPALIER_TOKEN_FILE": token}):
            self.serve(self.dir / "token.db", options=["--token-file", token])
        import grpc
        with self.assertRaises(grpc.RpcError) as refused:
            optuna.create_study(storage=espalier_optuna.storage(self.grpc))
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        study = optuna.create_study(study_name="t", storage=espalier_optuna.storage(self.grpc, token="a-secret-of-ours"))
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        self.assertEqual(len(study.trials), 3)

    def test_calls_outlast_a_restart(self):
        service = self.serve(self.dir / "restart.db")
        study = optuna.create_study(study_name="r", storage=espalier_optuna.storage(self.grpc))
        trial = study.ask()
        kill(service.pid)
        service.wait()
        answered = []
        import threading
        teller = threading.Thread(target=lambda: (trial.report(1.0, 1), study.tell(trial, 2.0), answered.append(True)))
        teller.start()
        self.serve(self.dir / "restart.db", self.grpc, self.http)
        teller.join(PATIENCE_S)
        self.assertEqual(answered, [True])
        self.assertEqual(study.trials[0].state, TrialState.COMPLETE)
        self.assertEqual(study.trials[0].intermediate_values, {1: 1.0})

    def test_bad_addresses_are_named(self):
        for address in ("host", ":1", "host:port"):
            with self.assertRaisesRegex(ValueError, "HOST:PORT"):
                espalier_optuna.storage(address)
        with self.assertRaises(FileNotFoundError):
            espalier_optuna.storage("127.0.0.1:1", tls_ca=str(self.dir / "none.pem"))


if __name__ == "__main__":
    unittest.main()
