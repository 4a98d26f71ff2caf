"""The sums of all accumulators, in this replica and merged over all."""
import copy
import pickle

_UNDER_WAY, _COUNTED, _DROPPED = range(3)
_KEPT_RESULTS = 32


def add_into(sums, updates):
    for key, value in updates.items():
        sums[key] = sums[key] + value if key in sums else value


class Sums:
    """What is added belongs at first to this replica alone, and while a step is under way to that step: one
    that is dropped is done again, and added again. Merging makes it part of what all replicas share."""

    # It is a State, which checkpoints and replicas that join take; the runtime registers it.
    def __init__(self):
        self.shared = {}   # by accumulator: its sums
        self.results = {}  # by evaluation: (accumulator, its sums)
        self.merges = 0
        self.asking = None  # (evaluation's key, accumulator) to which the next merge belongs
        self._own = {}
        self._open = {}
        self._phase = _COUNTED
        self.under_way = False  # whether what is added belongs to a step

    # ---- this replica's own

    def add(self, accumulator, key, value):
        if self._phase == _DROPPED:
            return
        into = self._open if self._phase == _UNDER_WAY else self._own
        add_into(into.setdefault(accumulator, {}), {key: value})

    def add_beside_steps(self, accumulator, sums):
        """What belongs to no step, whatever becomes of the one that is under way."""
        add_into(self._own.setdefault(accumulator, {}), sums)

    def begin_microbatch(self):
        self._phase = _UNDER_WAY
        self.under_way = True

    def count_step(self):
        for accumulator, sums in self._open.items():
            add_into(self._own.setdefault(accumulator, {}), sums)
        self._open = {}
        self._phase = _COUNTED
        self.under_way = False

    def drop_step(self):
        if self._phase == _UNDER_WAY:
            self._phase = _DROPPED
            self.under_way = False
        self._open = {}

    def forget(self, accumulator):
        self._own.pop(accumulator, None)

    def snapshot(self):
        return self.merges, copy.deepcopy(self._own)

    def restore(self, snapshot):
        """Of this replica's own part, unless it has been merged since."""
        merges, own = snapshot
        if merges == self.merges:
            self._own = own

    # ---- over all replicas

    def own_part(self):
        """Empty where nothing was added, so that nothing has to be sent."""
        return pickle.dumps(self._own) if self._own else b""

    def merge(self, parts):
        for part in parts:
            for accumulator, sums in (pickle.loads(part) if part else {}).items():
                add_into(self.shared.setdefault(accumulator, {}), sums)
        self._own = {}
        self.merges += 1
        if self.asking is not None:
            key, accumulator = self.asking
            self.keep(key, accumulator, self.shared.setdefault(accumulator, {}))

    def keep(self, key, accumulator, sums):
        self.results[key] = (accumulator, copy.deepcopy(sums))
        while len(self.results) > _KEPT_RESULTS:
            del self.results[min(self.results)]

    def result(self, key, accumulator):
        """Of an evaluation that was done without this replica; where that one is no longer kept, of the newest
        that stood at the same place of its epoch."""
        kept = self.results.get(key)
        if kept is None or kept[0] != accumulator:
            of_it = [k for k, (name, _) in self.results.items() if name == accumulator]
            alike = [k for k in of_it if k[2] == key[2]] or of_it
            kept = self.results[max(alike)] if alike else (accumulator, {})
        return copy.deepcopy(kept[1])

    # ---- as a State

    def save(self, fileobj):
        pickle.dump((self.shared, self.results, self.merges), fileobj)

    def load(self, fileobj):
        shared, results, merges = pickle.load(fileobj)
        if merges != self.merges:  # what this replica had added is among them
            self._own, self._open = {}, {}
        self.shared, self.results, self.merges = shared, results, merges

    def sync(self):
        pass
