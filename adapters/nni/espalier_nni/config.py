"""What an experiment says about the pool that runs its trials."""
# NNI checks the types of fields when it runs: annotations must be types, not strings.
import dataclasses
import hashlib
import os
import pathlib
import re
import urllib.parse
from typing import Any, Dict, Optional, Union

from nni.experiment.config.training_service import TrainingServiceConfig
from nni.experiment.config.utils import PathLike
from nni.runtime.config import get_config_directory
from typing_extensions import Literal

from espalier_nni import registration

DEFAULT_ADDRESS = "http://127.0.0.1:7078"
SHORTEST_POLL_S = 0.05
LONGEST_POLL_S = 60.0
MOST_SLOTS = 1_000_000
LEAST_PRIORITY, MOST_PRIORITY = 0.001, 1000.0
MOST_GRACE_S = 3600.0

# Tuners of NNI that look for the smallest value unless they are told otherwise.
_MINIMIZING_TUNERS = {"tpe", "tpe_legacy", "anneal", "random", "gridsearch", "batch"}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclasses.dataclass(init=False)
class EspalierConfig(TrainingServiceConfig):
    """The fields of `trainingService` with `platform: espalier_nni`; docs/nni.md tells what each does."""

    platform: Literal["espalier_nni"] = "espalier_nni"
    service_address: str = DEFAULT_ADDRESS
    token: Optional[str] = None
    token_file: Optional[PathLike] = None
    tls_ca: Optional[PathLike] = None
    min_slots: Optional[int] = None
    max_slots: Optional[int] = None
    slots_per_gpu: Optional[int] = None
    checkpoint_directory: Optional[PathLike] = None
    adaptive: bool = False
    priority: Union[int, float] = 1
    environment: Optional[Dict[str, Any]] = None
    poll_interval: Union[int, float] = 0.2
    promise_assessor: Union[bool, Dict[str, Any]] = False
    stop_grace: Union[int, float] = 5
    maximize: Optional[bool] = None
    # NNI shows only services with this one to third parties.
    reuse_mode: bool = True

    def _canonicalize(self, parents):
        experiment = parents[0]
        if isinstance(experiment.training_service, list):
            raise ValueError(
                f"trainingService: {self.platform} cannot share an experiment with other platforms. Give one platform "
                "instead of a list; several machines are agents of one Espalier pool (`tuner agent --join`).")
        if experiment.shared_storage is not None:
            raise ValueError(
                f"sharedStorage: {self.platform} copies nothing, so there is nothing to store. Remove the field, and "
                "keep trialCodeDirectory where all agents see it.")
        if self.token_file is None and self.token is None and os.environ.get("ESPALIER_TOKEN_FILE"):
            self.token_file = os.path.abspath(os.environ["ESPALIER_TOKEN_FILE"])
        if self.tls_ca is None and os.environ.get("ESPALIER_TLS_CA"):
            self.tls_ca = os.path.abspath(os.environ["ESPALIER_TLS_CA"])
        super()._canonicalize(parents)
        if self.nni_manager_ip is None:
            # Trials speak with the service alone. Unset, NNI warns, and fails on a machine without a network.
            self.nni_manager_ip = "localhost"
        if isinstance(self.service_address, str):
            self.service_address = self.service_address.rstrip("/")
        if self.maximize is None:
            self.maximize = _maximizes(experiment)

    def _validate_canonical(self):
        super()._validate_canonical()
        self._check_service()
        self._check_slots()
        _check_range("poll_interval", self.poll_interval, SHORTEST_POLL_S, LONGEST_POLL_S, "seconds")
        _check_range("stop_grace", self.stop_grace, 0, MOST_GRACE_S, "seconds")
        _check_range("priority", self.priority, LEAST_PRIORITY, MOST_PRIORITY, "(the experiment's share beside others)")
        for name, value in (self.environment or {}).items():
            if not _VARIABLE.match(name):
                _refuse("environment", name, "names of letters, digits and _ that do not begin with a digit")
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                _refuse(f"environment.{name}", value, "a string or a number")
        if not self.reuse_mode:
            _refuse("reuse_mode", False, "true (NNI loads no other kind of third-party service)")
        if not self.trial_command.strip():
            _refuse("trial_command", self.trial_command, "the command that runs a trial")
        registration.require(self.platform)

    def _check_service(self):
        address = urllib.parse.urlsplit(self.service_address)
        try:
            right = address.scheme in ("http", "https") and address.hostname and address.port
        except ValueError:
            right = False
        if not right or address.path or address.query or address.username:
            _refuse("service_address", self.service_address,
                    f'the HTTP address that `tuner serve` prints, such as "{DEFAULT_ADDRESS}"')
        if self.token is not None and self.token_file is not None:
            _refuse("token", "(not shown)", "given either itself or as token_file, not both")
        for name in ("token_file", "tls_ca"):
            path = getattr(self, name)
            if path is not None and not os.access(path, os.R_OK):
                _refuse(name, path, "a file that can be read")
        if self.tls_ca is not None and address.scheme == "http":
            _refuse("service_address", self.service_address, "https://... when tls_ca is set")
        if self.token is not None:
            self.token_file = _kept_token(self.token)
            self.token = None

    def _check_slots(self):
        for name in ("min_slots", "max_slots"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST_SLOTS:
                _refuse(name, value, f"from 1 to {MOST_SLOTS}")
        if self.slots_per_gpu is not None and not 1 <= self.slots_per_gpu <= 1000:
            _refuse("slots_per_gpu", self.slots_per_gpu,
                    "from 1 to 1000: the slots that agents make of a GPU (`tuner agent --slots-per-gpu`)")
        if self.min_slots is not None and self.max_slots is not None and self.min_slots > self.max_slots:
            _refuse("max_slots", self.max_slots, f"at least min_slots, {self.min_slots}")


def _maximizes(experiment):
    """Whether large values are good ones: what tuner or assessor are told, or what the tuner takes for granted."""
    for algorithm in (experiment.tuner, experiment.assessor):
        mode = (getattr(algorithm, "class_args", None) or {}).get("optimize_mode")
        if mode is not None:
            return mode == "maximize"
    name = getattr(experiment.tuner, "name", None)
    if experiment.assessor is not None and str(name).lower() in ("random", "gridsearch", "batch"):
        return True  # NNI's assessors do
    return isinstance(name, str) and name.lower() not in _MINIMIZING_TUNERS


def _kept_token(token):
    """A file of the user's alone that holds the token: NNI shows and stores what is in the configuration itself."""
    folder = pathlib.Path(get_config_directory()) / "espalier-tokens"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / hashlib.sha256(token.encode()).hexdigest()[:16]
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(token)
    return str(path)


def _check_range(name, value, low, high, unit):
    if isinstance(value, bool) or not low <= value <= high:
        _refuse(name, value, f"from {low:g} to {high:g} {unit}")


def _refuse(name, value, right):
    raise ValueError(f"EspalierConfig: {name} is {value!r}, must be {right}")
