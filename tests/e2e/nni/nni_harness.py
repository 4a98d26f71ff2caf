"""What the tests with NNI share: experiments on a service of ours, asked by NNI's own REST."""
import atexit
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import urllib.error
import urllib.request

from nni.experiment import Experiment, launcher
import psutil
import yaml

from harness import LONG_S, PATIENCE_S, TunerTest, wait_for
from ports import two_free_ports

HERE = pathlib.Path(__file__).resolve().parent
TRIAL = f"/usr/bin/python3 -S {HERE / 'channel_trial.py'}"
STARTS = 3  # another program may have taken the port
# NNI gives its own manager four seconds to come up, which is little on a machine that has other things to do.
launcher._check_rest_server.__defaults__ = (60, None)
NNICTL = """from nni.experiment import launcher
launcher._check_rest_server.__defaults__ = (60, None)
from nni.tools.nnictl.nnictl import parse_args
parse_args()
"""
LIVE = ("WAITING", "RUNNING", "UNKNOWN")


class NniTest(TunerTest):
    """Managers and tuners of NNI are gone at a test's end."""

    def setUp(self):
        super().setUp()
        self.log = self.dir / "log"
        self.log.mkdir()
        self.managers = []  # processes that may not be in NNI's list
        self.agent_process = None
        os.environ["NODE_OPTIONS"] = f'--require "{HERE / "patient_manager.js"}"'

    def tearDown(self):
        for process in self.managers:
            end_tree(process)
        for experiment, known in self.known_experiments().items():
            end_tree(manager_of(experiment, known.get("pid")))
        # Trials are of process groups of their own: only the agent ends them all.
        if self.agent_process is not None:
            self.agent_process.terminate()
            self.agent_process.wait(timeout=PATIENCE_S)
        super().tearDown()

    @staticmethod
    def known_experiments():
        file = pathlib.Path.home() / "nni-experiments" / ".experiment"

        def whole():
            # A manager that tells what it does empties the file first.
            with contextlib.suppress(ValueError):
                return [json.loads(file.read_text())]
        return wait_for(whole, "NNI's list of experiments")[0] if file.exists() else {}

    def pool(self, slots):
        """A service and an agent, which is up. Neither agent nor replicas are given up because a busy machine keeps them
        from their word."""
        service = self.serve(self.dir / "espalier.db", options=["--lease", 60])
        self.agent_process = self.agent(slots, options=["--replica-lease", 0])
        self.wait_slots(slots)
        return service

    def wait_slots(self, slots):
        def up():
            with urllib.request.urlopen(f"http://{self.http}/nni/v1/service") as answer:
                return json.load(answer)["slots"] == slots
        wait_for(up, f"a pool of {slots} slots")

    def experiment(self, platform="espalier_nni", space=None, tuner="Random", variables=None, **fields):
        """Of channel_trial.py unless `trial_command` says otherwise, with those environment variables; fields of experiment
        and service by their own names."""
        experiment = Experiment(platform)
        config = experiment.config
        config.search_space = space or {"x": {"_type": "uniform", "_value": [0, 1]}}
        config.trial_command = fields.pop("trial_command", TRIAL)
        config.trial_code_directory = str(HERE)
        config.trial_concurrency = 2
        config.max_trial_number = 2
        config.tuner.name = tuner
        config.tuner.class_args = {"seed": 3}
        service = config.training_service
        service.service_address = f"http://{self.http}"
        service.environment = {"LOG": str(self.log), **{name: str(value) for name, value in (variables or {}).items()}}
        for name, value in fields.items():
            setattr(service if hasattr(service, name) else config, name, value)
        return experiment

    def start_experiment(self, experiment, resume=False):
        """Until its manager is up, in the background."""
        for attempt in range(STARTS):
            try:
                port = two_free_ports()
                if resume:
                    experiment.resume(port, wait_completion=False)
                else:
                    experiment.start(port)
                break
            except Exception:
                # The manager of a failed start has been told to end, and its id is free.
                if attempt == STARTS - 1:
                    raise
        atexit.unregister(experiment.stop)
        self.managers.append(psutil.Process(experiment._proc.pid))
        # Reaped at once: nnictl waits for the end of a process that it has told to stop.
        threading.Thread(target=experiment._proc.wait, daemon=True).start()
        return experiment

    def create(self, **fields):
        """By `nnictl create`, as most users do; returns the port."""
        file = self.write("experiment.yml", yaml.safe_dump(fields))

        def created():
            port = two_free_ports()
            known = self.known_experiments()
            output = self.nnictl("create", "--config", file, "--port", port)
            fresh = [id for id in self.known_experiments() if id not in known]
            return port if fresh and "Traceback" not in output else None
        return wait_for(created, "nnictl create")

    def rest(self, experiment, path, method="GET", body=None):
        port = experiment if isinstance(experiment, int) else experiment.port
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/nni/{path}", data,
                                         {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read().decode()
        try:
            return json.loads(text)
        except ValueError:
            return text

    def refused(self, experiment, path, method="GET"):
        """The message with which NNI answers an error."""
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.rest(experiment, path, method)
        return json.loads(caught.exception.read())["error"]

    def trials(self, experiment):
        return {trial["trialJobId"]: trial for trial in self.rest(experiment, "trial-jobs")}

    def states(self, experiment):
        return sorted(trial["status"] for trial in self.trials(experiment).values())

    def metrics(self, experiment, trial, kind="PERIODICAL"):
        """[(sequence, value)] as stored by NNI, in order of arrival."""
        return [(metric["sequence"], json.loads(json.loads(metric["data"])))
                for metric in self.rest(experiment, f"metric-data/{trial}?type={kind}")]

    def wait_done(self, experiment):
        def done():
            status = self.rest(experiment, "check-status")
            self.assertEqual(status["errors"], [], self.manager_log(experiment))
            self.assertIn(status["status"], ("RUNNING", "NO_MORE_TRIAL", "DONE"), self.manager_log(experiment))
            return status["status"] == "DONE"
        wait_for(done, "the experiment's end", LONG_S)

    def wait_error(self, experiment):
        """The messages in NNI's list of errors."""
        def error():
            status = self.rest(experiment, "check-status")
            return isinstance(status, dict) and status["status"] == "ERROR" and status["errors"]
        return wait_for(error, "an error of the experiment")

    @staticmethod
    def manager_log(experiment):
        root = pathlib.Path.home() / "nni-experiments"
        name = getattr(experiment, "id", "_latest")
        return (root / name / "log" / "nnimanager.log").read_text()[-6000:]

    def starts(self, trial):
        """[(pid, first step)] of channel_trial.py."""
        file = self.log / trial
        return [tuple(map(int, line.split())) for line in file.read_text().splitlines()] if file.exists() else []

    def nnictl(self, *arguments):
        return subprocess.run([sys.executable, "-c", NNICTL, *map(str, arguments)], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/", timeout=LONG_S).stdout


def alive(pid):
    try:
        os.kill(pid, 0)
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def manager_of(experiment, pid):
    """The process that manages an experiment; None: it has ended, and its number may be another one's by now."""
    try:
        process = psutil.Process(pid) if pid is not None else None
        return process if process is not None and experiment in process.cmdline() else None
    except psutil.Error:
        return None


def end_tree(root):
    """Kills a process and all below it, and waits for them."""
    try:
        processes = [*root.children(recursive=True), root] if root is not None else []
    except psutil.NoSuchProcess:
        return
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            pass
    # A process that nobody reaps has ended as well.
    wait_for(lambda: not any(alive(process.pid) for process in processes), "the end of a killed process")
