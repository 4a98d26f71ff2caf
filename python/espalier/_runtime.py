"""The process's runtime: the library, and what it asks of Python."""
import ctypes
import importlib.util
import io
import logging
import math
import os
import random
import sys

from espalier import _library, _set_option, checkpoint
from espalier._library import Callbacks
from espalier._plain_runtime import NO_PARAMETER, PlainRuntime, RankRuntime, is_rank
from espalier._sums import Sums
from espalier.errors import UsageError

_the = None
_make = None  # what makes it, where that is not Runtime


def runtime():
    """The one of this process, opened when it is first asked for."""
    global _the
    if _the is None:
        if _make is not None:
            _the = _make()
        elif is_rank():
            _the = RankRuntime()
        elif importlib.util.find_spec("torch") is None:
            _the = PlainRuntime()
        else:
            _the = Runtime()
    return _the


def make_by(call):
    """Has `call` make this process's runtime when it is first asked for: a Runtime, or one of a class of its own."""
    global _make
    _make = call


def is_open():
    return _the is not None


class Runtime:
    def __init__(self):
        # What is imported lazily would be imported while other replicas wait.
        import torch
        import torch._dynamo  # noqa: F401  the first optimizer of a process asks for it
        self.torch = torch
        self.library = _library.Library()
        self.ops = torch.ops.espalier
        self.models = []
        self.rules = []
        self.loaders = []
        self.training_loader = None
        self.current_loader = None  # the loader that is being iterated
        self.joined = False
        self.rehearsing = None  # the function that is rehearsed
        self.rehearsed = False
        self.in_epoch = None  # from 0, within a loop over epochs
        self.left_epoch = None  # the epoch that the loop left last
        self.on_leave = []
        self.sums = Sums()
        self._position = _library.Position()
        self._microbatch = _library.Microbatch()
        self._at_microbatch = ctypes.byref(self._microbatch)
        self._steps = 0  # optimizer steps when it was last asked how many there are
        self._given_parameters = None
        callbacks = self._callbacks()
        self._open(callbacks)
        self.library.ask(NO_PARAMETER)
        self.facts = _library.TrialFacts()
        self.library.trial(ctypes.byref(self.facts))
        if os.environ.get("ESPALIER_OWN_GPU"):  # to which the library has limited the process
            os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["ESPALIER_OWN_GPU"]
        self.device = torch.device("cpu" if self.facts.device < 0 else f"cuda:{self.facts.device}")
        torch.set_num_threads(self.facts.threads)
        checkpoint.on_new_state(lambda name: self.library.add_state(name.encode()))
        checkpoint.State.__init__(self.sums, "espalier.sums")

    def _open(self, callbacks):
        """The trial takes its `--set name=value` from the command line; what is left is for the program's own parser."""
        arguments = (ctypes.c_char_p * len(sys.argv))(*[a.encode() for a in sys.argv])
        try:
            self.library.open(len(sys.argv), arguments, ctypes.byref(callbacks))
        except UsageError as error:
            if not _set_option.is_given():
                raise
            print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
            sys.exit(2)
        finally:
            _set_option.take()

    # ---- what training asks

    @property
    def in_trial(self):
        """Whether the process is one of a study's."""
        return bool(self.facts.agent)

    @property
    def in_group(self):
        """Whether there is a group to sum over."""
        return self.joined

    @property
    def parameters(self):
        if self._given_parameters is None:
            self._given_parameters = self.library.parameters()
            self._given_parameters.pop(NO_PARAMETER, None)
        return self._given_parameters

    @property
    def position(self):
        """Where training is now."""
        self.library.position(ctypes.byref(self._position))
        return self._position

    def share(self, size):
        """Where this replica's part of so many samples begins and ends: those of the replicas differ by one."""
        position = self.position
        least, more = divmod(size, position.replicas)
        begin = position.rank * least + min(position.rank, more)
        return begin, begin + least + (1 if position.rank < more else 0)

    def note_step(self, dropped=False):
        """After each call in which steps are taken, here or by others: the sums of the step that was under way count
        if it was."""
        before, self._steps = self._steps, self.library.steps()
        if self._steps > before:
            self.sums.count_step()
        elif dropped:
            self.sums.drop_step()
        self._draw_alike()

    def _draw_alike(self):
        """What the program decides by random numbers between steps is decided alike by all replicas."""
        seed = self.library.take_seed()
        if seed:
            random.seed(seed)
            numpy = sys.modules.get("numpy")
            if numpy is not None:
                numpy.random.seed(seed & 0xFFFFFFFF)

    def step_was_dropped(self):
        """Whether the batch under way is dealt again, because a replica was lost."""
        loader = self.current_loader
        return loader is not None and loader.training and any(m.outcome == _library.DROPPED for m in self.models)

    def rehearse(self, microbatch):
        """Has `microbatch` called, of which nothing is left."""
        if self.joined:
            raise UsageError("rehearse was called after training began: call it before the first epoch")
        if self.rehearsing is not None:
            raise UsageError("rehearse was called within rehearse")
        self.rehearsing = microbatch
        for model in self.models:
            model.begin_batch()
        self.sums.begin_microbatch()
        try:
            self.library.rehearse()
            self.rehearsed = True
        finally:
            self.sums.drop_step()
            self.sums.count_step()  # that of no step: nothing
            for model in self.models:
                model.begin_batch()
            self.rehearsing = None

    def next_epoch(self, epochs):
        if self.rehearsing is not None:
            raise UsageError("an epoch was begun within rehearse")
        if not self.joined:
            self._begin_training()
        more = self.library.next_epoch(epochs)
        self.note_step()
        return more

    def next_microbatch(self):
        """The same object each time, or None."""
        # The program has left its optimizer unstepped: the step ends here, or comes to nothing with its group.
        ends = self.sums.under_way and not self.current_loader.before_last
        if self.current_loader.was_left_out():
            self.library.leave_out_microbatch()
        found = self.library.next_microbatch(self._at_microbatch)
        self.note_step(ends)
        return self._microbatch if found else None

    def begin_microbatch(self):
        """Backward belongs to the microbatch from here on."""
        for model in self.models:
            model.begin_batch()
        self.sums.begin_microbatch()
        self.library.begin_microbatch()

    def begin_evaluation(self, accumulator=0):
        """`accumulator`: the number of the accumulator that is summed, from 1; 0: an evaluation."""
        evaluation = _library.Evaluation(accumulator=accumulator)
        self.library.begin_evaluation(ctypes.byref(evaluation))
        self.note_step()
        return evaluation

    def share_buffers(self, evaluation, ends=False):
        """Before an evaluation that is to do: all replicas get the buffers of rank 0 (running statistics differ between
        them), whose model is the one that is saved. `ends`: nothing will be summed. False if the group was lost."""
        shared = self.library.share_buffers(ctypes.byref(evaluation), int(ends))
        self._steps = self.library.steps()
        self._draw_alike()
        return shared

    def begin_whole_evaluation(self):
        """To be called where all replicas are about to evaluate on all samples, each by itself."""
        evaluation = self.begin_evaluation()
        while evaluation.state == _library.Evaluation.TO_DO and not self.share_buffers(evaluation, ends=True):
            pass

    def end_evaluation(self, evaluation):
        merged = self.library.end_evaluation(ctypes.byref(evaluation))
        self._steps = self.library.steps()
        self._draw_alike()
        return merged

    def _begin_training(self):
        loader = self.training_loader or next((x for x in self.loaders if x.shuffle), None)
        loader = loader or (self.loaders[0] if self.loaders else None)
        self.training_loader = loader
        if loader is None:  # a program that only counts epochs
            data = _library.Data(size=1, batch_size=1, accumulation=1)
        else:
            data = loader.describe()
        self.library.set_data(ctypes.byref(data))
        schedules = [schedule for model in self.models for schedule in model.schedules]
        for model in self.models:
            model.settle(schedules)
        from espalier.torch._rehearsal import rehearse_joiner
        rehearse_joiner(self)
        self.joined = True

    # ---- what C++ asks

    def _callbacks(self):
        guard = self.library.guard
        return Callbacks(
            step=guard(Callbacks.STEP, self._step_optimizer),
            model=guard(Callbacks.OF_MODEL, self._model),
            compared=guard(Callbacks.OF_MODEL, self._compared),
            write_optimizer=guard(Callbacks.MODEL, self._write_optimizer),
            read_optimizer=guard(Callbacks.MODEL, self._read_optimizer),
            clear_optimizer=guard(Callbacks.MODEL, lambda model: self.models[model].clear_state()),
            state=guard(Callbacks.NAMED, self._state),
            checkpoint=guard(Callbacks.NAMED, self._checkpoint),
            sums=guard(Callbacks.SUMS, self._sums),
            factor=self.library.keep(Callbacks.FACTOR(self._factor)),
            before_exit=self.library.keep(Callbacks.BEFORE_EXIT(self._before_exit)),
            rehearse=guard(Callbacks.REHEARSE, lambda: self.rehearsing()))

    def _step_optimizer(self, model, factors, count):
        self.models[model].take_step(factors[:count])

    def _model(self, number, what):
        model = self.models[number]
        if what in (0, 1):
            named = model.state.parameters() if what == 0 else model.state.buffers()
            for name in named:
                self.library.give(name.encode())
            self.ops.give(list(named.values()))
        elif what == 2:
            names = [name.decode() for name in self.library.incoming()]
            model.state.set_buffers(dict(zip(names, self.ops.incoming())))
        elif what == 3:
            self.library.give(model.state.other())
        elif what == 4:
            model.state.set_other(self.library.incoming()[0])
        elif what == 5:
            model.hooks.defer()
        else:
            model.hooks.call()

    def _compared(self, number, what):
        if what == 2:
            self.models[number].give_moments()
            return
        names, tensors, numbers = self.models[number].compared()
        for text in names if what == 1 else [repr(numbers)]:
            self.library.give(text.encode())
        if what == 0:
            self.ops.give(tensors)

    def _write_optimizer(self, model):
        pickled, tensors = self.models[model].write_state()
        self.library.give(pickled)
        self.ops.give(tensors)

    def _read_optimizer(self, model):
        self.models[model].read_state(self.library.incoming()[0], self.ops.incoming())

    def _state(self, name, what):
        name = name.decode()
        state = checkpoint.states()[name]
        if what == 0:
            self.library.give(checkpoint.saved(name))
        elif what == 1:
            state.load(io.BytesIO(self.library.incoming()[0]))
        else:
            state.sync()

    def _checkpoint(self, path, what):
        from espalier.torch import _checkpoint
        if what == 0:
            position, accumulators = (text.decode() for text in self.library.incoming())
            pickled, storages = _checkpoint.dump(self.models, self.parameters, position, accumulators)
            self.library.give(pickled)
            self.ops.give(storages)
        elif what == 1:
            for text in _checkpoint.load(path.decode(), self.models, self.parameters):
                self.library.give(text.encode())
        else:
            self.library.give(_checkpoint.position_in(path.decode()).encode())

    def _sums(self, what):
        if what == 0:
            self.library.give(self.sums.own_part())
        else:
            self.sums.merge(self.library.incoming())

    def _factor(self, rule, group, scale, sqr, var, progress, base_batch_size, dataset_size):
        try:
            return self.rules[rule].factor(group, scale, progress, base_batch_size)
        except BaseException as error:  # raised again by the caller of C++
            self.library.failed(error)
            return math.nan

    def _before_exit(self):
        """Python's own end does not come: what it would write out is written here."""
        for call in self.on_leave:
            try:
                call()
            except Exception:  # the others are to be called, too
                logging.getLogger("espalier").exception("on_leave")
        for handler in logging.getLogger().handlers:
            handler.flush()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass
