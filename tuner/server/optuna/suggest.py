# Asks Optuna for the parameters of trials: what tuner/server/optuna starts as a process of its own. It is told on its
# standard input, a line of JSON a message, and answers on its standard output, a line each:
#
#   {"parent": pid, "memory_bytes": n, "files": n, "processor_s": s, "folders": [...]}  before anything is imported
#       {"optuna": "5.0.0", "files_confined": true}
#   {"space": [...], "directions": [...], "sampler": "", "package": "", "options": {...}}
#       {}
#   {"number": n, "seed": s, "study_seed": s, "processor_s": s, "ended": [...], "held": [...], "running": [...],
#    "stored": [[number, text], ...], "stored_of_study": text}
#       {"parameters": [[place, value], ...], "stored": text, "stored_of_study": text}
#   {"constrained": true, "number": 0, ... as above}
#       {}   if the sampler takes such a study, and has the packages that it needs
#
# or, to any of them, {"refused": why}. Of a trial: [number, state, values, last step, constraints, parameters]. A value
# of a parameter is a number; of a choice the place of its option. What has ended is told once; all else every time. A
# sampler is made for each suggestion, so that what is suggested follows from the message, and from those before it.
import ctypes
import json
import os
import resource
import sys

_MOST_TEXT = 800  # characters of a refusal
_SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # the kernel's numbers of architecture and call
_IO_URING_SETUP = 425
_LIBC = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    pass


def _close_network():
    """Lets no socket be made from now on, by a filter of system calls. False: the kernel does not take it."""
    if os.uname().machine not in _SOCKET:
        return False
    architecture, socket = _SOCKET[os.uname().machine]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 13  # EACCES
    steps = [(load, 0, 0, 4), (equal, 0, 5, architecture), (load, 0, 0, 0), (at_least, 3, 0, 0x40000000),
             (equal, 2, 0, socket), (equal, 1, 0, _IO_URING_SETUP), (answer, 0, 0, allow), (answer, 0, 0, refuse)]

    class Step(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]

    program = Program(len(steps), (Step * len(steps))(*steps))
    set_seccomp, filter_mode = 22, 2
    return _LIBC.prctl(set_seccomp, filter_mode, ctypes.byref(program), 0, 0) == 0


def _close_files(folders):
    """Lets it read these folders and what Python needs, and nothing else (Landlock). False: the kernel has none."""
    create, add, restrict = 444, 445, 446
    version = _LIBC.syscall(create, None, 0, 1)
    if version < 1:
        return False
    execute, write, read, list_ = 1, 2, 4, 8
    handled = (1 << 13) - 1
    for since, right in ((2, 1 << 13), (3, 1 << 14), (5, 1 << 15)):
        handled |= right if version >= since else 0
    network, scopes = (3 if version >= 4 else 0), (3 if version >= 6 else 0)  # TCP; abstract sockets and signals
    attributes = (ctypes.c_uint64 * 3)(handled, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _LIBC.syscall(create, ctypes.byref(attributes), size, 0)
    if rules < 0:
        return False

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    def allow(path, file_rights, folder_rights=0):
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        rights = file_rights | (folder_rights if os.path.isdir(path) else 0)
        _LIBC.syscall(add, rules, 1, ctypes.byref(Beneath(rights, fd)), 0)
        os.close(fd)

    libraries = ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo",
                 "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo",
                 f"/proc/{os.getpid()}"]
    for path in {*libraries, *sys.path, sys.base_prefix + "/lib", sys.prefix + "/lib", *folders}:
        if path and path != "/":
            allow(path, read, list_)
    allow("/dev/urandom", read)
    allow("/dev/null", read | write)
    restricted = _LIBC.syscall(restrict, rules, 0) == 0
    os.close(rules)
    return restricted


def bound_processor(seconds):
    """Has the kernel end it once it has used so many more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime + seconds) + 1
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def confine(message):
    """No network, no files of others', bounds. Whether files are confined; where the network is not, it refuses."""
    set_death_signal, no_new_privileges, kill = 1, 38, 9
    _LIBC.prctl(set_death_signal, kill, 0, 0, 0)
    if os.getppid() != message["parent"]:
        os._exit(1)
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0),
                        (resource.RLIMIT_NOFILE, message["files"]), (resource.RLIMIT_DATA, message["memory_bytes"])):
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))
    bound_processor(message["processor_s"])
    if _LIBC.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        raise Refused("this system lets no process give up its rights")
    files = _close_files(message["folders"])
    if not _close_network():
        raise Refused("this system lets no process give up its network (seccomp)")
    return files


def import_optuna():
    global numpy, optuna, random, BaseSampler, FrozenTrial, TrialState, Storage
    import datetime
    import random
    import warnings

    warnings.simplefilter("ignore")
    try:
        import numpy
        import optuna
    except ImportError as error:
        raise Refused(f"{sys.executable} cannot import Optuna: {error}") from None
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial, TrialState

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    moment = datetime.datetime(2000, 1, 1)

    class Storage(BaseStorage):
        """The one study: what has been told of it, and the trial that is to come."""

        def __init__(self, directions):
            self.directions = directions
            self.trials = []  # by number
            self.attributes = {}
            self.to_come = 0  # the number of the trial that is to come; clients may have asked for later ones

        def frozen(self, number, state, **of_trial):
            given = {"params": {}, "distributions": {}, "user_attrs": {}, "system_attrs": {}, "intermediate_values": {},
                     "value": None, "values": None, **of_trial}
            ended = moment if state.is_finished() else None
            return FrozenTrial(number=number, state=state, trial_id=number, datetime_start=moment,
                               datetime_complete=ended, **given)

        def put(self, trial):
            while len(self.trials) <= trial.number:  # with what nobody has told of
                self.trials.append(self.frozen(len(self.trials), TrialState.FAIL))
            self.trials[trial.number] = trial

        def create_new_study(self, directions, study_name=None):
            return 0

        def delete_study(self, study_id):
            raise NotImplementedError

        def set_study_user_attr(self, study_id, key, value):
            raise NotImplementedError

        def set_study_system_attr(self, study_id, key, value):
            self.attributes[key] = value

        def get_study_id_from_name(self, study_name):
            return 0

        def get_study_name_from_id(self, study_id):
            return "study"

        def get_study_directions(self, study_id):
            return self.directions

        def get_study_user_attrs(self, study_id):
            return {}

        def get_study_system_attrs(self, study_id):
            return dict(self.attributes)

        def get_all_studies(self):
            return []

        def create_new_trial(self, study_id, template_trial=None):
            self.put(self.frozen(self.to_come, TrialState.RUNNING))
            return self.to_come

        def set_trial_param(self, trial_id, param_name, param_value_internal, distribution):
            trial = self.trials[trial_id]
            trial.distributions[param_name] = distribution
            trial.params[param_name] = distribution.to_external_repr(param_value_internal)

        def get_trial_id_from_study_id_trial_number(self, study_id, trial_number):
            return trial_number

        def set_trial_state_values(self, trial_id, state, values=None):
            raise NotImplementedError

        def set_trial_intermediate_value(self, trial_id, step, intermediate_value):
            raise NotImplementedError

        def set_trial_user_attr(self, trial_id, key, value):
            self.trials[trial_id].user_attrs[key] = value

        def set_trial_system_attr(self, trial_id, key, value):
            self.trials[trial_id].system_attrs[key] = value

        def get_trial(self, trial_id):
            return self.trials[trial_id]

        def get_all_trials(self, study_id, deepcopy=True, states=None):
            return [trial for trial in self.trials if states is None or trial.state in states]


def named(module, name, what, is_one):
    """What has that name in the module; if none does, the error tells those that are there."""
    known = sorted(key for key, value in vars(module).items() if not key.startswith("_") and is_one(value))
    if name == "" and len(known) == 1:
        name = known[0]
    if name not in known:
        said = f'"{name}" is unknown' if name else "the package needs a name of one of its samplers"
        raise Refused(f"{what}{said}; known are {', '.join(known) or 'none'}")
    return getattr(module, name)


def module_of_package(package, folders):
    import importlib.util
    import re

    if not re.fullmatch(r"\w+(/\w+)*", package, re.ASCII):
        raise Refused(f'package "{package}" is no folder of a hub: needs one like samplers/auto_sampler')
    places = [os.path.join(folder, *within, package) for folder in folders for within in ((), ("package",))]
    for place in places:
        file = os.path.join(place, "__init__.py")
        if os.path.isfile(file):
            name = "optunahub_registry.package." + package.replace("/", ".")
            spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=[place])
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    raise Refused(f'package "{package}" is in none of the hubs that the service may load from: '
                  f"{', '.join(folders) or 'it has none, tuner serve --optuna-hub names them'}")


def missing_packages(module):
    """Those that the module is to import once it needs them, as Optuna's do, and that are not there. A sampler may need
    them only after its first trials."""
    import importlib.util
    import types

    named = {value.__name__.partition(".")[0] for value in vars(module).values() if isinstance(value, types.ModuleType)}
    return sorted(name for name in named - set(sys.modules) if importlib.util.find_spec(name) is None)


class Suggestions:
    """Of one study, whose space, directions and sampler the message names."""

    constrained = False  # a trial has told of constraints
    stored_of_study = "{}"

    def __init__(self, message, folders):
        import inspect

        self.inspect = inspect
        self.space = [self.dimension(of_space) for of_space in message["space"]]
        self.storage = Storage([optuna.study.StudyDirection[direction] for direction in message["directions"]])
        self.study = optuna.Study("study", self.storage)
        self.stored = {}  # of trials, by number
        self.name, self.options = message["sampler"], message["options"]
        self.whose = message["package"] or self.name or "TPESampler"
        if message["package"]:
            self.module = module_of_package(message["package"], folders)
        else:
            self.module = optuna.samplers
            self.name = self.name or "TPESampler"
        self.make_sampler(0, 0, False)  # refuses what is wrong before there is a trial

    @staticmethod
    def dimension(told):
        kind = told["kind"]
        if kind == "choice":
            options = told["options"]
            try:
                distinct = len(set(options)) == len(options)
            except TypeError:
                distinct = False
            options = options if distinct else [json.dumps(option) for option in options]
            distribution = optuna.distributions.CategoricalDistribution(options)
        elif kind == "whole":
            distribution = optuna.distributions.IntDistribution(told["low"], told["high"])
        else:
            distribution = optuna.distributions.FloatDistribution(told["low"], told["high"], log=kind == "log",
                                                                  step=told.get("step"))
        return told["name"], distribution, told.get("if")

    def made(self, module, name, what, is_one, options, extra):
        made = named(module, name, what, is_one)
        takes = self.inspect.signature(made).parameters
        given = {key: self.object(value) for key, value in options.items()}
        given.update({key: value for key, value in extra.items() if key in takes and key not in given})
        try:
            return made(**given)
        except (TypeError, ValueError) as error:
            names = ", ".join(key for key in takes if key not in ("seed", "constraints_func"))
            raise Refused(f"{made.__name__}: {error}; it takes {names or 'no options'}") from None

    def object(self, value):
        """An option that is an object of Optuna's: {"sampler": "RandomSampler"} or {"crossover": "SBXCrossover"}."""
        if isinstance(value, dict) and "sampler" in value and set(value) <= {"sampler", "options"}:
            return self.made(optuna.samplers, value["sampler"], "", self.is_sampler, value.get("options", {}),
                             self.extra)
        if isinstance(value, dict) and "crossover" in value and set(value) <= {"crossover", "options"}:
            return self.made(optuna.samplers.nsgaii, value["crossover"], "crossover ", self.is_crossover,
                             value.get("options", {}), {})
        return value

    @staticmethod
    def is_sampler(one):
        return isinstance(one, type) and issubclass(one, BaseSampler) and not one.__name__.startswith("Base")

    @staticmethod
    def is_crossover(one):
        return isinstance(one, type) and one.__name__.endswith("Crossover") and not one.__name__.startswith("Base")

    def make_sampler(self, seed, study_seed, constrained):
        for reserved in ("seed", "constraints_func"):
            if reserved in self.options:
                raise Refused(f'option "{reserved}" is the service\'s to give')
        self.extra = {"seed": seed}
        if constrained:
            self.extra["constraints_func"] = lambda trial: trial.system_attrs.get("constraints")
        extra = dict(self.extra)
        if self.name == "QMCSampler":  # its sequence is the study's, of which each trial takes a point
            extra["seed"] = study_seed
            extra["independent_sampler"] = optuna.samplers.RandomSampler(seed=seed)
        return self.made(self.module, self.name, "", self.is_sampler, self.options, extra)

    def trial(self, told):
        number, state, values, last_step, constraints, parameters = told
        of_trial = {"params": {}, "distributions": {}, "system_attrs": json.loads(self.stored.get(number, "{}"))}
        for place, value in parameters:
            name, distribution, _ = self.space[place]
            of_trial["params"][name] = distribution.to_external_repr(value)
            of_trial["distributions"][name] = distribution
        if state in ("COMPLETE", "PRUNED"):
            of_trial["values"] = values
        if state == "PRUNED":
            of_trial["intermediate_values"] = {last_step: values[0]}
        if constraints:
            of_trial["system_attrs"]["constraints"] = constraints
            self.constrained = True
        self.storage.put(self.storage.frozen(number, TrialState[state], **of_trial))

    def suggest(self, message):
        bound_processor(message["processor_s"])
        number = message["number"]
        self.stored.update(message["stored"])
        for told in message["ended"] + message["held"] + message["running"]:
            self.trial(told)
        self.storage.to_come = number
        if "stored_of_study" in message:
            self.stored_of_study = message["stored_of_study"]
        self.storage.attributes = json.loads(self.stored_of_study)
        random.seed(message["seed"])  # for samplers that take no seed
        numpy.random.seed(message["seed"])
        self.study.sampler = self.make_sampler(message["seed"], message["study_seed"], self.constrained)
        answer = {"parameters": self.parameters_of(self.study.ask())}
        stored = self.storage.trials[number].system_attrs
        self.storage.put(self.storage.frozen(number, TrialState.FAIL))  # until it is told that it runs
        if stored:
            answer["stored"] = json.dumps(stored)
        of_study = json.dumps(self.storage.attributes)
        if of_study != self.stored_of_study:
            answer["stored_of_study"] = of_study
        return answer

    def check(self, message):
        """Refuses constraints, objectives and a space that the sampler cannot do, and one that lacks a package. What it
        raises otherwise is a trial's to tell."""
        self.constrained = message["constrained"]

        def heeds(one):
            return self.is_sampler(one) and "constraints_func" in self.inspect.signature(one).parameters

        own = named(self.module, self.name, "", self.is_sampler)
        if self.constrained and not heeds(own):
            known = sorted(name for name, one in vars(optuna.samplers).items() if heeds(one))
            raise Refused(f"{own.__name__} does not heed constraints: give {', '.join(known)}")
        if missing := missing_packages(sys.modules[own.__module__]):
            raise Refused(f"{own.__name__} needs {', '.join(missing)}, which {sys.executable} has not")
        try:
            self.suggest(message)
        except (ImportError, NotImplementedError, Refused, TypeError, ValueError):
            raise
        except Exception:
            pass

    def parameters_of(self, trial):
        chosen = {}
        for place, (name, distribution, condition) in enumerate(self.space):
            if condition is not None and chosen.get(condition[0]) != condition[1]:
                continue
            if isinstance(distribution, optuna.distributions.CategoricalDistribution):
                value = trial.suggest_categorical(name, distribution.choices)
            elif isinstance(distribution, optuna.distributions.IntDistribution):
                value = trial.suggest_int(name, distribution.low, distribution.high)
            else:
                value = trial.suggest_float(name, distribution.low, distribution.high, step=distribution.step,
                                            log=distribution.log)
            chosen[place] = float(distribution.to_internal_repr(value))
        return sorted(chosen.items())


def why(error, suggestions, message):
    whose = suggestions.whose if suggestions else message.get("package") or message.get("sampler") or "Optuna"
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    where = f"{os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}"
    return f"{whose}: {type(error).__name__}: {error} ({where})"


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what samplers print is none
    messages = sys.stdin.buffer
    suggestions, folders = None, []
    for line in messages:
        message = json.loads(line)
        try:
            if "parent" in message:
                folders = message["folders"]
                files = confine(message)
                import_optuna()
                answer = {"optuna": optuna.__version__, "files_confined": files}
            elif "space" in message:
                suggestions = Suggestions(message, folders)
                answer = {}
            elif "constrained" in message:
                suggestions.check(message)
                answer = {}
            else:
                answer = suggestions.suggest(message)
        except Refused as refused:
            answer = {"refused": str(refused)[:_MOST_TEXT]}
        except BaseException as error:
            answer = {"refused": why(error, suggestions, message)[:_MOST_TEXT]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
