"""kill -9 of the service while clients write: nothing acknowledged is lost or doubled.

With --kills N it is killed N times; the last line is one JSON object."""
import environment

environment.run_inside(__file__)

import json
import random
import sys
import threading
import time
import unittest

import grpc
import optuna
from optuna.storages import GrpcStorageProxy
from optuna.trial import TrialState

from harness import TunerTest, wait_for

KILLS = 30
CLIENTS = 4
REPORTS = 3


class Client(threading.Thread):
    """Trial after trial by one client object that is never made anew. A call that gets no answer may have been heard: the
    trial is left alone, and counts as not acknowledged."""

    def __init__(self, address, study, name, stop):
        super().__init__()
        host, port = address.rsplit(":", 1)
        self.storage = GrpcStorageProxy(host=host, port=int(port))
        self.study, self.client, self.stop = study, name, stop
        self.acknowledged = {}  # trial id: value
        self.refused = []

    def run(self):
        count = 0
        while not self.stop.is_set():
            count += 1
            value = self.client + count / 1e6
            try:
                trial = self.storage.create_new_trial(self.study)
                for step in range(REPORTS):
                    self.storage.set_trial_intermediate_value(trial, step, value + step)
                self.storage.set_trial_user_attr(trial, "client", self.client)
                self.storage.set_trial_state_values(trial, TrialState.COMPLETE, [value])
                self.acknowledged[trial] = value
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    self.refused.append(error)
                time.sleep(0.01)
            except Exception as error:
                self.refused.append(error)
                time.sleep(0.01)


class KilledService(TunerTest):
    def test_nothing_acknowledged_is_lost_or_doubled(self):
        figures = self.kill_often(KILLS)
        self.assertGreaterEqual(figures["acknowledged"], KILLS)

    def kill_often(self, kills):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        database = self.dir / "killed.db"
        address = self.held_address()
        service = self.start("serve", "--grpc", address, "--db", database)
        host, port = address.rsplit(":", 1)
        storage = GrpcStorageProxy(host=host, port=int(port))
        storage.wait_server_ready(timeout=60)
        study = storage.create_new_study([optuna.study.StudyDirection.MINIMIZE], "killed")
        stop = threading.Event()
        self.addCleanup(stop.set)
        clients = [Client(address, study, name, stop) for name in range(CLIENTS)]
        for client in clients:
            client.start()
        draw = random.Random(1)
        for kill in range(kills):
            # In mid load: on a busy machine the service needs a while before anything is acknowledged.
            wait_for(lambda: sum(len(c.acknowledged) for c in clients) > kill, "a trial to be acknowledged")
            time.sleep(draw.uniform(0.05, 0.4))
            service.kill()
            service.wait()
            service = self.start("serve", "--grpc", address, "--db", database)
        done = sum(len(c.acknowledged) for c in clients)
        wait_for(lambda: sum(len(c.acknowledged) for c in clients) >= done + CLIENTS,
                 "the same client objects to go on after the last kill")
        stop.set()
        for client in clients:
            client.join()
        self.assertEqual([e for c in clients for e in c.refused], [])
        trials = {t._trial_id: t for t in storage.get_all_trials(study)}
        self.assertEqual(sorted(t.number for t in trials.values()), list(range(len(trials))), "numbers are dense")
        acknowledged = {t: v for c in clients for t, v in c.acknowledged.items()}
        self.assertEqual(len(acknowledged), sum(len(c.acknowledged) for c in clients), "no id was given twice")
        for trial_id, value in acknowledged.items():
            trial = trials[trial_id]
            self.assertEqual(trial.state, TrialState.COMPLETE)
            self.assertEqual(trial.values, [value])
            self.assertEqual(trial.intermediate_values, {s: value + s for s in range(REPORTS)})
            self.assertEqual(trial.user_attrs, {"client": int(value)})
        return {"kills": kills, "acknowledged": len(acknowledged), "trials": len(trials), "lost": 0, "doubled": 0}


if __name__ == "__main__":
    if "--kills" in sys.argv:
        test = KilledService()
        test.setUp()
        try:
            print(json.dumps(test.kill_often(int(sys.argv[sys.argv.index("--kills") + 1]))))
        finally:
            test.tearDown()
    else:
        unittest.main()
