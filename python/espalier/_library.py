"""libespalier_torch.so by ctypes: the only file that knows its interface (trial_runner/python/interface.h
says what each function does)."""
import ctypes
import json
import os
import pathlib
import re

from espalier.errors import EspalierError, TrialError, UsageError

_c_text = ctypes.c_char_p
_i64 = ctypes.c_int64


class Callbacks(ctypes.Structure):
    STEP = ctypes.CFUNCTYPE(ctypes.c_int, _i64, ctypes.POINTER(ctypes.c_double), _i64)
    MODEL = ctypes.CFUNCTYPE(ctypes.c_int, _i64)
    OF_MODEL = ctypes.CFUNCTYPE(ctypes.c_int, _i64, ctypes.c_int)
    NAMED = ctypes.CFUNCTYPE(ctypes.c_int, _c_text, ctypes.c_int)
    SUMS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    FACTOR = ctypes.CFUNCTYPE(ctypes.c_double, _i64, _i64, *[ctypes.c_double] * 6)
    BEFORE_EXIT = ctypes.CFUNCTYPE(None)
    REHEARSE = ctypes.CFUNCTYPE(ctypes.c_int)
    _fields_ = [("step", STEP), ("model", OF_MODEL), ("compared", OF_MODEL), ("write_optimizer", MODEL),
                ("read_optimizer", MODEL), ("clear_optimizer", MODEL), ("state", NAMED), ("checkpoint", NAMED), ("sums", SUMS), ("factor", FACTOR),
                ("before_exit", BEFORE_EXIT), ("rehearse", REHEARSE)]


class TrialFacts(ctypes.Structure):
    _fields_ = [("number", _i64), ("seed", ctypes.c_uint64), ("device", _i64), ("agent", _i64),
                ("adaptive_batch", _i64), ("threads", _i64), ("joins", _i64)]


class ModelOptions(ctypes.Structure):
    _fields_ = [("name", _c_text), ("scaling_rule", _c_text), ("own_rule", _i64), ("base_batch_size", _i64),
                ("max_skipped_steps", _i64), ("bucket_bytes", _i64), ("max_gradient_norm", ctypes.c_double),
                ("is_adam", _i64)]


class Data(ctypes.Structure):
    _fields_ = [("size", _i64), ("batch_size", _i64), ("max_batch_size", _i64), ("min_atomic_batch_size", _i64),
                ("max_atomic_batch_size", _i64), ("accumulation", _i64)]


class Microbatch(ctypes.Structure):
    _fields_ = [("epoch", _i64), ("begin", _i64), ("size", _i64), ("last", _i64)]

    def key(self):
        return self.epoch, self.begin, self.size


class Evaluation(ctypes.Structure):
    TO_DO, DONE, PAST = range(3)
    _fields_ = [("epoch", _i64), ("step", _i64), ("call", _i64), ("state", _i64), ("accumulator", _i64)]

    def key(self):
        return self.epoch, self.step, self.call


class Position(ctypes.Structure):
    _fields_ = [("epoch", _i64), ("step", _i64), ("cursor", _i64), ("batch_size", _i64), ("skipped_steps", _i64),
                ("generation", _i64), ("rank", _i64), ("replicas", _i64), ("nodes", _i64), ("microbatches", _i64),
                ("next_batch_size", _i64), ("progress", ctypes.c_double), ("gain", ctypes.c_double), ("factor", ctypes.c_double)]


STEPPED, SKIPPED, ACCUMULATED, DROPPED, LEFT_OUT = range(5)  # what has come of a step

# Name, result, arguments. A result of None: text or nothing, which is not checked.
_FUNCTIONS = {
    "open": (ctypes.c_int, ctypes.c_int, ctypes.POINTER(_c_text), ctypes.POINTER(Callbacks)),
    "trial": (ctypes.c_int, ctypes.POINTER(TrialFacts)),
    "report": (ctypes.c_int, _i64, ctypes.c_double, ctypes.POINTER(_c_text), ctypes.POINTER(ctypes.c_double), _i64),
    "add_state": (ctypes.c_int, _c_text),
    "finish": (ctypes.c_int, ctypes.POINTER(ctypes.c_double)),
    "fail": (ctypes.c_int, _c_text),
    "add_model": (_i64, ctypes.POINTER(ModelOptions)),
    "set_data": (ctypes.c_int, ctypes.POINTER(Data)),
    "set_batch_size": (ctypes.c_int, _i64),
    "rehearse": (ctypes.c_int,),
    "not_rehearsed": (ctypes.c_int, _c_text),
    "rehearsed_samples": (_i64,),
    "next_epoch": (ctypes.c_int, _i64),
    "next_microbatch": (ctypes.c_int, ctypes.POINTER(Microbatch)),
    "samples": (ctypes.c_int, _i64, _i64, _i64, _i64, ctypes.POINTER(_i64)),
    "forecast": (_i64, ctypes.POINTER(Microbatch), _i64),
    "begin_microbatch": (ctypes.c_int,),
    "end_backwards": (ctypes.c_int,),
    "defers_hooks": (ctypes.c_int, _i64),
    "hold_gradients": (ctypes.c_int, ctypes.c_int),
    "zero_gradients": (ctypes.c_int, _i64, ctypes.POINTER(_i64), _i64),
    "step": (ctypes.c_int, _i64, ctypes.POINTER(ctypes.c_double), _i64, ctypes.c_double),
    "pass_over": (ctypes.c_int, _i64),
    "leave_out_microbatch": (ctypes.c_int,),
    "end_microbatch": (ctypes.c_int,),
    "begin_evaluation": (ctypes.c_int, ctypes.POINTER(Evaluation)),
    "share_buffers": (ctypes.c_int, ctypes.POINTER(Evaluation), ctypes.c_int),
    "end_evaluation": (ctypes.c_int, ctypes.POINTER(Evaluation)),
    "abandoned": (ctypes.c_int,),
    "position": (ctypes.c_int, ctypes.POINTER(Position)),
    "noise": (ctypes.c_int, _i64, ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_double), _i64),
}
_READING = {"trial", "defers_hooks", "rehearsed_samples", "zero_gradients", "position", "noise", "samples", "forecast", "abandoned"}


_LIBRARY = "libespalier_torch.so"


def _found():
    """The library's files, the one of the oldest torch first: those of the wheel, one for each minor release of torch, or
    the one that ESPALIER_TORCH_LIBRARY names."""
    named = os.environ.get("ESPALIER_TORCH_LIBRARY")
    folder = pathlib.Path(__file__).parent / "lib"
    files = [pathlib.Path(named)] if named else folder.glob(f"torch-*/{_LIBRARY}")
    files = sorted((file for file in files if file.is_file()), key=lambda file: _order(_torch_of(file)))
    if not files:
        where = f"ESPALIER_TORCH_LIBRARY={named}" if named else f"{folder}/torch-*/{_LIBRARY}"
        raise UsageError(f"espalier: there is no library at {where}: install the wheel of espalier, or name a "
                         f"built {_LIBRARY} by ESPALIER_TORCH_LIBRARY")
    return files


def _torch_of(file):
    """The minor release of torch that it is built for, which is known without loading it."""
    return _minor(json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["torch"])


def _minor(version):
    return re.match(r"\d+\.\d+", version)[0]


def _order(minor):
    return [int(number) for number in minor.split(".")]


def find(version):
    """The file for that torch. Any other, once loaded, would fail with the name of a C++ symbol."""
    files = {_torch_of(file): file for file in _found()}
    if _minor(version) not in files:
        built = list(files)
        fitting = " and ".join(filter(None, [", ".join(built[:-1]), built[-1]]))
        nearest = next((minor for minor in built if _order(minor) > _order(_minor(version))), built[-1])
        raise UsageError(f"espalier is built for torch {fitting}, and this is torch {version}: "
                         f"pip install 'torch=={nearest}.*', or an espalier that is built for yours")
    return files[_minor(version)]


def load():
    """The library itself, as ctypes sees it; once more, it is there already."""
    import torch
    # Its symbols are its own: made global they would serve other libraries of the process.
    return ctypes.CDLL(str(find(torch.__version__)), mode=os.RTLD_LOCAL | os.RTLD_NOW)


class Library:
    """The functions, by their names without esp_. What fails in C++ is raised here; what a callback has
    raised is raised again as it was."""

    def __init__(self):
        self._dll = load()
        self._raised = None  # by a callback
        self._kept = []      # callbacks, which C++ holds
        self._dll.esp_error.restype = _c_text
        self._dll.esp_error.argtypes = [ctypes.POINTER(ctypes.c_int)]
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(self._dll, f"esp_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, self._checked(function))
        self._dll.esp_parameters.restype = _c_text
        self.steps = self._dll.esp_steps
        self.steps.restype = _i64
        self.take_seed = self._dll.esp_take_seed
        self.take_seed.restype = _i64
        self._dll.esp_incoming.restype = ctypes.c_void_p
        self._dll.esp_incoming.argtypes = [_i64, ctypes.POINTER(_i64)]
        self._dll.esp_incoming_count.restype = _i64
        self._dll.esp_give.argtypes = [_c_text, _i64]
        self._dll.esp_give.restype = None
        self._dll.esp_ask.argtypes = [_c_text]
        self._dll.esp_ask.restype = None

    def _checked(self, function):
        def call(*arguments):
            result = function(*arguments)
            if result < 0:
                self._raise()
            return result
        return call

    def refuse(self, message):
        """What trains or speaks for the trial raises from here on; what it is can still be read."""
        def call(*_arguments):
            raise UsageError(message)
        for name in set(_FUNCTIONS) - _READING:
            setattr(self, name, call)

    def _raise(self):
        kind = ctypes.c_int()
        message = self._dll.esp_error(ctypes.byref(kind)).decode(errors="replace")
        raised, self._raised = self._raised, None
        if kind.value == 3 and raised is not None:
            raise raised
        error = {1: UsageError, 2: TrialError}.get(kind.value, EspalierError)
        raise error(message) from raised

    def guard(self, kind, function):
        """A callback of that kind; its exceptions become failures."""
        def call(*arguments):
            try:
                function(*arguments)
                return 0
            except BaseException as error:  # C++ frames lie between this and its caller
                self._raised = error
                self.give(f"{type(error).__name__}: {error}".encode())
                return 1
        made = kind(call)
        self._kept.append(made)
        return made

    def keep(self, callback):
        self._kept.append(callback)
        return callback

    def failed(self, error):
        self._raised = error

    def parameters(self):
        return json.loads(self._dll.esp_parameters())

    def ask(self, name):
        self._dll.esp_ask(name.encode())

    def give(self, content):
        self._dll.esp_give(content, len(content))

    def incoming(self):
        """The texts that C++ has for a callback."""
        texts = []
        for index in range(self._dll.esp_incoming_count()):
            size = _i64()
            start = self._dll.esp_incoming(index, ctypes.byref(size))
            texts.append(ctypes.string_at(start, size.value) if size.value else b"")
        return texts
