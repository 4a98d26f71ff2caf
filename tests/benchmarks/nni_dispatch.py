#!/usr/bin/env python3
# bench: nni_dispatch - 50 trivial trials at concurrency 2 by NNI's real manager on our pool, beside NNI's local service
# builds: tuner
"""Each trial asks for its parameters and reports one final value by NNI's HTTP channel (bash alone, no other process), so that
what is left is what manager and training service take. Trials write down when they start and end; a service's seconds per trial
are from the first start to the last end. 200 trials more show whether that grows. first_trial_s: from the call that starts the
experiment to the first trial's process."""
import atexit
import contextlib
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

NNI_TESTS = pathlib.Path(__file__).resolve().parents[1] / "e2e" / "nni"
sys.path.insert(0, str(NNI_TESTS))
import environment
from ports import two_free_ports

from bench_run import TUNER, start_service, usual_or_smoke

TRIALS, CONCURRENCY, MANY, ROUNDS = usual_or_smoke((50, 2, 200, 3), (2, 2, 4, 1))

TRIAL = r"""#!/bin/bash
began=$EPOCHREALTIME
url=${NNI_TRIAL_COMMAND_CHANNEL#http://}
host=${url%%:*} port=${url#*:}
port=${port%%/*}
call() {
  exec 3<>/dev/tcp/"$host/$port"
  printf '%s /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' \
    "$1" "${url#*/}" "${url%%/*}" "${#2}" "$2" >&3
  read -r _ status _ <&3
  answer=
  while read -r line <&3 || [[ $line ]]; do answer=$line; done
}
call PUT '{"type": "request_parameter"}'
status=
until [[ $status == 200 ]]; do
  call GET ''
  [[ $status == 200 || $status == 408 ]] || exit 1
done
[[ $answer =~ parameter_id[^0-9]*([0-9]+) ]]
call PUT "{\"type\": \"metric\", \"metric\": \"{\\\"parameter_id\\\": ${BASH_REMATCH[1]}, \\\"trial_job_id\\\": \\\"$NNI_TRIAL_JOB_ID\\\", \\\"type\\\": \\\"FINAL\\\", \\\"sequence\\\": 0, \\\"value\\\": \\\"0.5\\\"}\"}"
echo "$began $EPOCHREALTIME" >>"TIMES"
"""

# Runs in NNI's interpreter.
DRIVER = """
import json, sys, time, urllib.request
from nni.experiment import Experiment, launcher
launcher._check_rest_server.__defaults__ = (60, None)  # as ../e2e/nni/nni_harness.py has it
platform, address, command, code, trials, concurrency, port = sys.argv[1:]
experiment = Experiment(platform)
config = experiment.config
config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
config.trial_command, config.trial_code_directory = command, code
config.trial_concurrency, config.max_trial_number = int(concurrency), int(trials)
config.nni_manager_ip = "127.0.0.1"
config.tuner.name = "Random"
config.tuner.class_args = {"seed": 3}
if platform != "local":
    config.training_service.service_address = address
begin = time.time()
experiment.start(int(port))
try:
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/nni/check-status") as answer:
            status = json.load(answer)
        assert not status["errors"], status
        if status["status"] == "DONE":
            break
        time.sleep(0.2)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/nni/trial-jobs") as answer:
        states = [trial["status"] for trial in json.load(answer)]
    assert states == ["SUCCEEDED"] * int(trials), states
finally:
    experiment.stop()
print(json.dumps({"begin": begin}))
"""


def experiment(nni, platform, address, trials):
    """[(start, end)] of the trials in order of their start, and when the experiment was started."""
    python, folder, variables = nni
    with tempfile.TemporaryDirectory() as code:
        times = pathlib.Path(code) / "times"
        script = pathlib.Path(code) / "trial.sh"
        script.write_text(TRIAL.replace("TIMES", str(times)))
        script.chmod(0o755)
        done = subprocess.run([python, "-c", DRIVER, platform, address, str(script), code, str(trials), str(CONCURRENCY),
                               str(two_free_ports())], env=variables, cwd=folder, check=False, text=True, capture_output=True,
                              timeout=200)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        began = json.loads(done.stdout.splitlines()[-1])["begin"]
        spans = sorted(tuple(map(float, line.split())) for line in times.read_text().splitlines())
    assert len(spans) == trials, f"{len(spans)} of {trials} trials have run to their end"
    return spans, began


def per_trial(spans):
    return (max(end for _, end in spans) - spans[0][0]) / len(spans)


@contextlib.contextmanager
def pool(folder):
    """The HTTP address of a service with CONCURRENCY slots."""
    with start_service(folder / "espalier.db") as (_, grpc, http):
        agent = subprocess.Popen([TUNER, "agent", "--join", grpc, "--http", http, "--slots", str(CONCURRENCY), "--dir",
                                  str(folder / "agent")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield f"http://{http}"
        finally:
            agent.terminate()
            agent.wait()


def main():
    python, folder, variables = environment.make()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    nni = python, folder, variables | {"NODE_OPTIONS": f'--require "{NNI_TESTS / "patient_manager.js"}"'}
    ours, local = [], []
    with tempfile.TemporaryDirectory() as folder, pool(pathlib.Path(folder)) as address:
        for _ in range(ROUNDS):
            for platform, where in (("espalier_nni", ours), ("local", local)):
                spans, began = experiment(nni, platform, address, TRIALS)
                where.append((per_trial(spans), spans[0][0] - began))
                print(f"{platform}: {where[-1][0]:.3f} s a trial, first after {where[-1][1]:.2f} s", flush=True)
        many, _ = experiment(nni, "espalier_nni", address, MANY)
    quarter = MANY // 4
    first, last = per_trial(many[:quarter]), per_trial(many[-quarter:])
    print(f"{MANY} trials: {first:.3f} s each of the first quarter, {last:.3f} s of the last", flush=True)
    middle = [statistics.median(column) for column in (*zip(*ours), *zip(*local))]
    print(json.dumps({"s_per_trial": round(middle[0], 3), "local_s_per_trial": round(middle[2], 3),
                      "first_trial_s": round(middle[1], 2), "local_first_trial_s": round(middle[3], 2),
                      "over_local": round(middle[0] / middle[2], 2),
                      "s_per_trial_of_200": round(per_trial(many), 3),
                      "last_over_first_quarter": round(last / first, 2)}))


if __name__ == "__main__":
    main()
