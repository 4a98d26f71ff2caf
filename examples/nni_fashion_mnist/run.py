#!/usr/bin/env python3
"""A service with a pool of its own, and on it the NNI experiment of experiment.yml, to its end; then what NNI recorded.

Needs a Python with NNI 3.0 and adapters/nni (pip install adapters/nni && espalier-nni register), and `tuner` and
`fashion_mnist` in PATH or in the folder ESPALIER_BIN.

usage: run.py [SLOTS]    (default: 2)
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from nni.experiment import Experiment
from nni.experiment.config import ExperimentConfig

HERE = pathlib.Path(__file__).resolve().parent
PORT = int(os.environ.get("NNI_PORT", "8080"))


def address_of(process, log, word):
    """What the service prints after `word`."""
    while process.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith(word + " "):
                return line.split()[1]
        time.sleep(0.1)
    sys.exit(f"run.py: the service has ended:\n{log.read_text()}")


def start(arguments, log):
    with open(log, "w", encoding="utf-8") as out:
        return subprocess.Popen(["tuner", *map(str, arguments)], stdout=out, stderr=subprocess.STDOUT)


def run(slots, work):
    service = start(["serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--db", work / "pool.db"], work / "service")
    processes = [service]
    try:
        http = address_of(service, work / "service", "HTTP")
        grpc = address_of(service, work / "service", "gRPC")
        processes.append(start(["agent", "--join", grpc, "--http", http.removeprefix("http://"), "--slots", slots, "--name",
                                "pool", "--dir", work / "trials"], work / "agent"))
        config = ExperimentConfig.load(HERE / "experiment.yml")
        config.training_service.service_address = http
        experiment = Experiment(config)
        begin = time.monotonic()
        experiment.run(PORT)
        took = time.monotonic() - begin
        status = experiment.get_status()
        show(experiment)
        experiment.stop()
        print(f"{config.max_trial_number} trials in {took:.0f} s on {slots} slots: {status}")
        return 0 if status == "DONE" else 1
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            process.wait()


def show(experiment):
    """The trials as NNI knows them, the best first."""
    rows = []
    for trial in experiment.list_trial_jobs():
        value = trial.finalMetricData[0].data if trial.finalMetricData else float("nan")
        seconds = (trial.endTime - trial.startTime) / 1000 if trial.endTime else float("nan")
        rows.append((value, seconds, trial.hyperParameters[0].parameters, trial.status))
    print("accuracy  batch  rule      lr      seconds  state")
    for value, seconds, parameters, state in sorted(rows, key=lambda row: -row[0] if row[0] == row[0] else 1):
        print(f"{value:8.4f}  {parameters['batch_size']:5}  {parameters['scaling_rule']:8}  {parameters['lr']:.4f}  "
              f"{seconds:7.1f}  {state}")


def main():
    os.environ["PATH"] = os.environ.get("ESPALIER_BIN", "") + os.pathsep + os.environ["PATH"]
    for program in ("tuner", "fashion_mnist"):
        if shutil.which(program) is None:
            sys.exit(f"run.py: no {program} in PATH; build it, and set ESPALIER_BIN to the folder it is in")
    with tempfile.TemporaryDirectory() as work:
        return run(int(sys.argv[1]) if len(sys.argv) > 1 else 2, pathlib.Path(work))


if __name__ == "__main__":
    sys.exit(main())
