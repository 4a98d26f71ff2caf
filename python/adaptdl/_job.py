"""Jobs as AdaptDL starts them: processes that its environment variables number, which all end and are started
again from what they have saved. Only where no agent of Espalier's has started the process.

Epochs, sums, states and validation loops work over such a job. Models do not train over it: Espalier's groups do
that, and a job of one process is one.
"""
import collections
import os
import pathlib
import pickle

from espalier import _library, _runtime, checkpoint
from espalier.errors import UsageError

from adaptdl import _exchange, _saved, _variables


def given():
    """Whether AdaptDL's variables number this process."""
    if _runtime.is_open():
        return isinstance(_runtime.runtime(), Job)
    return _variables.number_process()


def take_over():
    """From here on this process's runtime is that of the job, if it is one when training asks for it."""
    _runtime.make_by(_make)


def _make():
    use_checkpoint_path()
    if given():
        return Job()
    return _runtime.Runtime()


def use_checkpoint_path():
    """A program that is run by hand trains on from the newest checkpoint in ADAPTDL_CHECKPOINT_PATH. An agent says
    itself where checkpoints are."""
    path = os.environ.get("ADAPTDL_CHECKPOINT_PATH")
    if _variables.agent() or not path or "ESPALIER_CHECKPOINT_DIR" in os.environ:
        return
    os.environ["ESPALIER_CHECKPOINT_DIR"] = path
    found = [(int(p.stem[5:]), p) for p in pathlib.Path(path).glob("step-*.pt") if p.stem[5:].isdigit()]
    if found:
        os.environ["ESPALIER_CHECKPOINT"] = str(max(found)[1])


class _Progress(checkpoint.State):
    """How far the job is: epochs that are done, and of each epoch the sums that are."""

    def __init__(self):
        super().__init__("adaptdl.progress")
        self.epoch = 0
        self.summed = {}

    def save(self, fileobj):
        pickle.dump((self.epoch, self.summed), fileobj)

    def load(self, fileobj):
        self.epoch, self.summed = pickle.load(fileobj)


class Job(_runtime.Runtime):
    """The runtime of a process of such a job. Once a model is wrapped it is the plain one, alone."""

    def __init__(self):
        self._trains = False
        self._training_loader = None
        super().__init__()
        self._under_way = False
        self._calls = collections.Counter()  # sums that were begun, by epoch
        self._progress = _Progress()
        for state in (self.sums, self._progress):
            _saved.load(state)

    def expect_lone_training(self):
        if _variables.replicas() != 1:
            raise UsageError(f"AdaptiveDataParallel: ADAPTDL_NUM_REPLICAS is {_variables.replicas()}, and no agent of Espalier's "
                             "has started this process: replicas that train together are started by `tuner run`")
        self._trains = True

    # ---- what differs without a model

    @property
    def in_group(self):
        return super().in_group if self._trains else True

    @property
    def training_loader(self):
        return self._training_loader if self._trains else None

    @training_loader.setter
    def training_loader(self, loader):
        self._training_loader = loader

    @property
    def position(self):
        if self._trains:
            return super().position
        return _library.Position(epoch=self._progress.epoch, rank=_variables.rank(),
                                 replicas=_variables.replicas(), nodes=_variables.nodes())

    def next_epoch(self, epochs):
        if self._trains:
            return super().next_epoch(epochs)
        if self._under_way:
            self._progress.epoch += 1
        self._under_way = self._progress.epoch < epochs
        return int(self._under_way)

    def begin_evaluation(self, accumulator=0):
        if self._trains:
            return super().begin_evaluation(accumulator)
        epoch = -1 if self.in_epoch is None else self.in_epoch
        evaluation = _library.Evaluation(epoch=epoch, call=self._calls[epoch])
        self._calls[epoch] += 1
        if evaluation.call < self._progress.summed.get(epoch, 0):
            evaluation.state = _library.Evaluation.DONE
        return evaluation

    def end_evaluation(self, evaluation):
        if self._trains:
            return super().end_evaluation(evaluation)
        self.merge_sums()
        self._progress.summed[evaluation.epoch] = evaluation.call + 1
        return 1

    def merge_sums(self):
        """What each process has added becomes part of what all share."""
        if self._trains:
            return
        self.sums.merge(_exchange.of_job().gather(self.sums.own_part()).result())

    @property
    def trains(self):
        return self._trains
