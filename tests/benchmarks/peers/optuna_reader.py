"""Reads the largest study of a server as Optuna's client does, without the client's parsing: optuna_reader.py HOST:PORT."""
import json
import statistics
import sys
import time

import grpc
from optuna.storages._grpc.auto_generated import api_pb2, api_pb2_grpc

channel = grpc.insecure_channel(sys.argv[1], options=[("grpc.max_receive_message_length", -1)])
stub = api_pb2_grpc.StorageServiceStub(channel)
study = stub.GetStudyIdFromName(api_pb2.GetStudyIdFromNameRequest(study_name="filled")).study_id
get_trials = channel.unary_unary("/optuna.StorageService/GetTrials")


def read(above, included=()):
    request = api_pb2.GetTrialsRequest(study_id=study, included_trial_ids=included, trial_id_greater_than=above)
    start = time.perf_counter()
    reply = get_trials(request.SerializeToString())
    return reply, time.perf_counter() - start


reply, first_s = read(-1)
trials = api_pb2.GetTrialsReply.FromString(reply).trials
last = max(t.trial_id for t in trials)
running = [stub.CreateNewTrial(api_pb2.CreateNewTrialRequest(study_id=study, template_trial_is_none=True)).trial_id
           for _ in range(8)]
seconds = [read(last, running)[1] for _ in range(500)]
print(json.dumps({"trials": len(trials), "bytes": len(reply), "first_load_s": first_s,
                  "incremental_p50_ms": 1e3 * statistics.median(seconds)}))
