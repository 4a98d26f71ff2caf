"""Schedules and scalers of a model, which replicas share and checkpoints keep."""
import pickle

from espalier import _pickles, checkpoint


class WithState(checkpoint.State):
    """A schedule or scaler, by its state_dict."""

    def __init__(self, name, of):
        super().__init__(name)
        self._of = of

    def save(self, fileobj):
        state = self._of.state_dict()
        _pickles.dump(state, pickle.Pickler(fileobj), {f"the state_dict() of the {type(self._of).__name__}": state},
                      "leave it out of the state_dict()")

    def load(self, fileobj):
        self._of.load_state_dict(pickle.load(fileobj))


class Schedule(WithState):
    """A schedule, and how often it was stepped between the loops of its epoch. A replica that joins there, or goes
    on from a checkpoint of that place, comes through that part of its program again: what the schedule it was given
    has done is left out. Within loops over data nothing is done again."""

    def __init__(self, name, of, run):
        super().__init__(name, of)
        self._run = run
        self._done = (-1, 0)    # the epoch, and how often what the schedule is now was stepped in it
        self._called = (-1, 0)  # the epoch, and how often this process called step() in it

    def _present(self, epoch):
        return max(self._done, (epoch, 0))

    def admits(self):
        """Asked for each call of step(): whether it is to be done."""
        epoch = self._run.in_epoch
        if epoch is None or self._run.current_loader is not None:
            return True
        self._called = (epoch, max(self._called, (epoch, 0))[1] + 1)
        # A spare that comes back when the others have gone on is in an earlier epoch than its schedule.
        if self._called <= self._present(epoch):
            return False
        self._done = self._called
        return True

    def save(self, fileobj):
        super().save(fileobj)
        epoch = self._run.in_epoch if self._run.in_epoch is not None else self._run.left_epoch
        pickle.dump(self._done if epoch is None else self._present(epoch), fileobj)

    def load(self, fileobj):
        super().load(fileobj)
        try:
            self._done = pickle.load(fileobj)
        except EOFError:  # a checkpoint of a version that did not count
            self._done = (-1, 0)
