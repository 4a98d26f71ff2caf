"""A process's runtime where there is no torch: parameters come in, reports go out, and nothing is elastic."""
import json
import os
import subprocess
import sys
import threading

from espalier import _set_option
from espalier.errors import TrialError, UsageError

NO_PARAMETER = "no_parameter"  # of a study that sweeps nothing, which must have one: programs do not see it
_TELL_WITHIN_S = 30  # which a service that restarts may take


def is_rank():
    """Whether this is one of several processes that the trial's own launcher has started, such as torchrun or accelerate.
    Those that a study's "launch" starts have no channel to the agent, also where there is only one."""
    ranks = os.environ.get("WORLD_SIZE", "")
    numbered = "RANK" in os.environ or "LOCAL_RANK" in os.environ  # Lightning's launcher sets the latter alone
    several = ranks.isdecimal() and int(ranks) > 1
    return "ESPALIER_TRIAL_ID" in os.environ and numbered and (several or "ESPALIER_CONTROL_FD" not in os.environ)


_telling = threading.Lock()


def tell(*words):
    """Has `tuner tell` say it of this process's trial, with the rank of this process, and returns the answer: "stop",
    "save" or "continue". It waits for a service that is just being restarted."""
    with _telling:
        told = subprocess.run(["tuner", "tell", "--timeout", str(_TELL_WITHIN_S), *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if told.returncode != 0:
        raise TrialError(told.stderr.strip() or f"tuner tell ended with {told.returncode}")
    if told.stderr:
        print(told.stderr, end="", file=sys.stderr)
    return told.stdout.strip()


def to_save(step, *of):
    """Whether this process's trial is to save and to end at the step; `of`: which rank it is, where that is not known."""
    return "ESPALIER_TRIAL_ID" in os.environ and tell("--step", str(step), "--should-save", *of) == "save"


def _flat(parameters, prefix=""):
    """As the library flattens them: {"n": {"_name": "A", "p": 1}} is {"n": "A", "n/A/p": 1}."""
    flat = {}
    for name, value in parameters.items():
        if name == NO_PARAMETER:
            continue
        if isinstance(value, dict) and isinstance(value.get("_name"), str):
            chosen = value["_name"]
            flat[prefix + name] = chosen
            flat.update(_flat({key: v for key, v in value.items() if key != "_name"}, f"{prefix}{name}/{chosen}/"))
        else:
            flat[prefix + name] = json.dumps(value) if isinstance(value, (dict, list)) else value
    return flat


def _given():
    """By the study's file, or by --set name=value of a program that runs alone."""
    path = os.environ.get("ESPALIER_PARAMETERS")
    if path:
        with open(path, encoding="utf-8") as file:
            return _flat(json.load(file))
    given = {}
    for at, word in enumerate(sys.argv):
        if at == 0 or word != "--set":
            continue
        name, equals, value = (sys.argv[at + 1] if at + 1 < len(sys.argv) else "").partition("=")
        if not name or not equals:
            print(f'{os.path.basename(sys.argv[0])}: --set "{name}": want name=value, like lr=0.1', file=sys.stderr)
            sys.exit(2)
        try:
            given[name] = json.loads(value)
        except ValueError:
            given[name] = value
    _set_option.take()
    return _flat(given)


class _Facts:
    agent = 0  # nothing that an agent says is heard: the process is a plain command

    def __init__(self, parameters):
        self.number = int(os.environ.get("ESPALIER_TRIAL_NUMBER", 0))
        self.seed = int(parameters.get("seed", os.environ.get("ESPALIER_SEED", self.number)))
        self.threads = int(os.environ.get("ESPALIER_THREADS", os.cpu_count() or 1))


class _Library:
    """What a Trial calls, by `tuner tell` within a trial, and on stdout outside of one."""

    def __init__(self):
        self._refused = None

    def ask(self, name):
        pass

    def refuse(self, why):
        self._refused = why

    def report(self, step, value, names, values, count):
        self._check()
        extra = {name.decode(): values[i] for i, name in enumerate(names)} if count else {}
        if "ESPALIER_TRIAL_ID" not in os.environ:
            figures = "".join(f" {name}={number:.9g}" for name, number in extra.items())
            print(f"report step={step} value={value:.9g}{figures}", flush=True)
            return
        if extra and is_rank():
            raise UsageError(f"report(..., {next(iter(extra))}=...): figures beside the value are of programs whose only "
                             "process is the trial's: report the value alone")
        figures = [word for name, number in extra.items() for word in ("--figure", f"{name}={number!r}")]
        tell("--step", str(step), "--value", repr(value), *figures)

    def should_stop(self, step):
        self._check()
        return "ESPALIER_TRIAL_ID" in os.environ and tell("--step", str(step)) == "stop"

    def should_save(self, step):
        self._check()
        return to_save(step)

    def finish(self, value):
        self._check()
        if value is None:  # the last report is the result
            return
        number = value._obj.value  # of ctypes.byref
        if "ESPALIER_TRIAL_ID" not in os.environ:
            print(f"finished value={number:.9g}", flush=True)
            return
        tell("--final", "--value", repr(number))

    def fail(self, reason):
        self._check()
        print(f"the trial has failed: {reason.decode()}", file=sys.stderr, flush=True)
        # Its exit code is all that says so.
        sys.stdout.flush()
        os._exit(1)

    def _check(self):
        if self._refused is not None:
            raise UsageError(self._refused)


class PlainRuntime:
    def __init__(self):
        self.parameters = _given()
        self.facts = _Facts(self.parameters)
        self.library = _Library()
        self.on_leave = []

    @property
    def in_trial(self):
        return "ESPALIER_TRIAL_ID" in os.environ

    @property
    def device(self):
        raise UsageError("a trial's device is one of torch, which is not installed here: pip install torch")

    def step_was_dropped(self):
        return False


class RankRuntime(PlainRuntime):
    """Of one of several processes that a launcher has started. They form their group by themselves, and share the trial's
    slots; the agent knows none of them."""

    @property
    def device(self):
        import torch
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return torch.device(f"cuda:{int(os.environ.get('LOCAL_RANK', 0)) % torch.cuda.device_count()}")

    def __getattr__(self, name):
        raise UsageError(f"an elastic loop starts its replicas itself, and this process is one of {os.environ['WORLD_SIZE']} "
                         "of a launcher: start the program without its launcher, or leave "
                         f"espalier.torch out of it ({name})")
