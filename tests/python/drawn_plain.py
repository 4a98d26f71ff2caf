"""A drawn program as a plain loop of PyTorch: over whole batches, or over the shares of a trial's replicas, one after the other."""
import copy
import math
import re

import torch

from drawn_job import HELD_OUT, Job
from drawn_programs import HALF as HALF_TYPES


MOST_REPLICAS = 4


class Differs(AssertionError):
    """The trial did what no plain loop does."""


def batches_of(program):
    return -(-program.samples // program.batch)


def samples_of(program, number):
    return list(range(number * program.batch, min((number + 1) * program.batch, program.samples)))


class Shares:
    """What replicas have said of one batch, in the last group that began it, and in those before that came to nothing."""

    def __init__(self, said):
        generations = sorted({each["generation"] for each in said})
        self.attempts = [[each for each in said if each["generation"] == generation] for generation in generations]

    def last(self, wanted):
        seen = sorted(sample for each in self.attempts[-1] for sample in each["samples"])
        # A replica may have begun the next batch in a step that all have taken back.
        parts = self.attempts[-1]
        if seen != wanted:
            parts = self._since_begun_again(parts)
            seen = sorted(sample for each in parts for sample in each["samples"])
        if seen != wanted and len(self.attempts) > 1:
            # A replica may hear of a newer group before it leaves the one that has begun the batch.
            parts = self._since_begun_again(self.attempts[-2] + self.attempts[-1])
            seen = sorted(sample for each in parts for sample in each["samples"])
        if seen != wanted:
            raise Differs(f"the batch of samples {wanted} was dealt as {[each['samples'] for each in parts]}")
        return parts

    @staticmethod
    def _since_begun_again(said):
        """Each replica's last pass through its samples."""
        last = {}
        for each in said:
            first = each["samples"][0]
            parts = last.setdefault(each["pid"], [])
            if any(first in part["samples"] for part in parts):
                parts.clear()
            parts.append(each)
        return [each for each in said if any(each is part for parts in last.values() for part in parts)]


def lasting(batches):
    """What replicas have said, without what has been undone since: a trial whose replicas are all gone goes on from a
    checkpoint, and may end before it comes to where they were."""
    last = {each["pid"]: i for i, each in enumerate(batches)}
    kept, generation, heard_until = [], -1, -1
    for i, each in enumerate(batches):
        if each["generation"] > generation and heard_until < i:
            kept = [before for before in kept if (before["epoch"], before["number"]) < (each["epoch"], each["number"])]
        generation = max(generation, each["generation"])
        heard_until = max(heard_until, last[each["pid"]])
        kept.append(each)
    return kept


class Plain:
    """Follows a trial through its batches. `backwards`: sums shares in the other order."""

    def __init__(self, program, trained, shares, backwards=False):
        self.program, self.shares, self.backwards = program, shares, backwards
        self.said = {}
        batches = lasting(trained.batches)
        for each in batches:
            self.said.setdefault((each["epoch"], each["number"]), []).append(each)
        self.last_said = {each["pid"]: i for i, each in enumerate(batches)}
        self.order = {id(each): i for i, each in enumerate(batches)}
        self.job = Job(program, plain=True, shares=shares)
        self.job.begin_training()
        self.buffers = {}  # of each replica
        self.seen_in = {}  # the generation of each replica
        self.kept = [self.job.buffers()]  # in checkpoints
        self.losses = {}

    def run(self):
        epochs = max(epoch for epoch, _ in self.said) + 1
        for epoch in range(epochs):
            self.job.begin_epoch(epoch)
            for number in range(batches_of(self.program)):
                self._batch(Shares(self.said.get((epoch, number), [])), number)
            self.job.end_epoch()
            self._evaluate(epoch)
        return self.job.result()

    def _batch(self, shares, number):
        if not shares.attempts:
            raise Differs(f"nobody has had batch {number} of an epoch")
        wanted = samples_of(self.program, number)
        parts = shares.last(wanted)
        self.there = [*self.buffers.values(), *self.kept]  # what a replica that joins here may have
        self.job.begin_batch()
        self.leavers = []
        if self.shares:
            takes = self._backward_of_shares(shares, parts, number, len(wanted))
        else:
            self._sums_of_no_step(shares, parts, wanted)
            takes = self.job.backward(self.job.x[wanted], self.job.y[wanted], number)
        # All go back to the state of who has left a step out late.
        late = self.leavers if self.program.has("skips:late") else []
        self.last = sorted(late or parts, key=lambda each: each["rank"])
        if takes:
            self.job.step()
            self._share_averages()

    def _sums_of_no_step(self, shares, parts, wanted):
        """Statistics over all replicas, of a batch that was begun and came to nothing when one was lost behind them."""
        if not self.program.has("normalised:sync"):
            return
        for attempt in shares.attempts[:-1]:
            dies = next((each["dies"] for each in attempt if "dies" in each), None)
            if dies in ("backward", "stepped") and {e["pid"] for e in attempt} & {e["pid"] for e in parts}:
                with torch.no_grad():
                    self.job.model(self.job.x[wanted])

    # ---- shares

    def _backward_of_shares(self, shares, parts, number, whole):
        final = {id(each) for each in parts}
        for each in (each for attempt in shares.attempts for each in attempt):
            if id(each) not in final and self.last_said[each["pid"]] > self.order[id(each)]:
                self._enter(each)
                with torch.no_grad():
                    self._forward(each)
                self._leave(each)
        self.there += self.buffers.values()
        takes = True
        for each in sorted(parts, key=lambda each: each["rank"], reverse=self.backwards):
            self._enter(each)
            samples = each["samples"]
            took = self.job.backward(self.job.x[samples], self.job.y[samples], number, len(samples) / whole)
            self._leave(each)
            if not took:
                self.leavers.append(each)
            takes &= took
        return takes

    def _forward(self, each):
        """All that a batch that came to nothing has left."""
        for number in range(len(each.get("draws", ()))):
            self.job.before_pass(number)
            with self.job.autocast():
                self.job.model(self.job.x[each["samples"]])

    def _enter(self, each):
        """Puts the model where this replica has it."""
        if "buffers" in each:
            pid, said = each["pid"], each["buffers"]
            # All go back to the state of who has left a step out late.
            # So do those who had no sample of a step.
            sat_out = 0 < self.program.samples % self.program.batch < MOST_REPLICAS
            stays = self.seen_in.get(pid) == each["generation"] and not self.program.has("skips:late") and not sat_out
            there = [] if stays else self.there
            own = min((own for own in [self.buffers.get(pid, self.kept[0]), *there] if alike(own, said, self.program)), default=None,
                      key=lambda own: far(own, said))
            if own is None:
                raise Differs(f"in epoch {each['epoch']}, batch {each['number']}, generation {each['generation']} replica "
                              f"{each['rank']} has buffers that nobody should have: {said}\nand had {self.buffers.get(pid)}")
            self.seen_in[pid] = each["generation"]
            draws = each.get("draws", ())
            self.job.before_pass = lambda number: torch.set_rng_state(draws[number]) if number < len(draws) else None
            set_buffers(self.job.net, own)

    def _leave(self, each):
        if "buffers" in each:
            self.buffers[each["pid"]] = self.job.buffers()

    def _share_averages(self):
        """What a step has changed is on all replicas, and belongs to no forward pass."""
        for name, buffer in self.job.net.named_buffers():
            if name.startswith("averaged"):
                for each in self.buffers.values():
                    each[name] = buffer.clone()

    # ---- evaluations

    def _buffers_after(self, epoch):
        """Rank 0's. Where the group was lost in the last step, that is the state of whoever had come to its end."""
        before = [self.buffers[each["pid"]] for each in self.last]
        then = next(iter(self.said.get((epoch + 1, 0), [])), None)
        if then is None or then["generation"] == self.last[0]["generation"]:
            return before[0]
        return min((own for own in before if own.keys() == then["buffers"].keys()), default=before[0],
                   key=lambda own: far(own, then["buffers"]))

    def _evaluate(self, epoch):
        if self.shares and self.buffers:
            of_all = self._buffers_after(epoch)
            self.buffers = {pid: copy.deepcopy(of_all) for pid in self.buffers}
            self.kept.append(copy.deepcopy(of_all))
            set_buffers(self.job.net, of_all)
        self.job.net.eval()
        with torch.no_grad():
            self.losses[epoch] = self.job.evaluate(torch.arange(HELD_OUT))
        self.job.net.train()


def set_buffers(net, buffers):
    for name, buffer in buffers.items():
        path, _, leaf = name.rpartition(".")
        net.get_submodule(path)._buffers[leaf] = buffer.clone()
    for name in dict(net.named_buffers()).keys() - buffers.keys():
        path, _, leaf = name.rpartition(".")
        del net.get_submodule(path)._buffers[leaf]


def far(one, other):
    """How far apart buffers of the same names are."""
    return sum(float((one[name].double() - other[name].double()).abs().sum()) for name in other)


def alike(one, other, program):
    rough = program.precision in HALF_TYPES
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and torch.allclose(
            one[name].double(), other[name].double(), atol=HALF if rough else 1e-4, rtol=HALF if rough else 1e-3)
        for name in one)


# ---- beside the trial

ROUNDING = 2e-5  # of a program in float32, beside the largest of a tensor's values
HALF = 0.02      # the same where numbers have eight bits or eleven
TOO_MUCH = 50    # times such a bound


def distance(got, wanted):
    """The largest by which a parameter or buffer differs, beside the largest of its values."""
    worst = 0.0
    for name, value in wanted.items():
        if name not in got or got[name].shape != value.shape:
            raise Differs(f'"{name}" is {got.get(name)}, and of the plain loop {value}')
        one, other = got[name].double(), value.double()
        if not torch.equal(one.isfinite(), other.isfinite()):
            return float("inf")
        if one.numel():
            difference = torch.where(one == other, 0.0, (one - other).abs()).nan_to_num(0.0)
            worst = max(worst, float(difference.max() / other.nan_to_num(0.0).abs().max().clamp_min(0.1)))
    if got.keys() - wanted.keys():
        raise Differs(f"{sorted(got.keys() - wanted.keys())} are in no plain loop")
    return worst


def apart(got, wanted):
    return max(distance(got["parameters"], wanted["parameters"]), distance(got["buffers"], wanted["buffers"]))


def same(one, other):
    """Whether two replicas have come to the same, bit by bit."""
    return all(torch.equal(one["parameters"][name], other["parameters"][name]) for name in one["parameters"]) and \
        one["rates"] == other["rates"] and one["scale"] == other["scale"]


def fault(program, trained):
    """What is wrong with what has come of it; None: nothing."""
    if program.refused is not None:
        right = re.search(program.refused, trained.failure)
        return None if right else f"was to be refused, as {program.refused!r}: {trained.failure or 'it was trained'}"
    if trained.failure:
        return f"the trial has failed: {trained.failure}"
    first = min(trained.results, key=lambda said: said["rank"])["result"]
    if not all(same(first, said["result"]) for said in trained.results):
        return "replicas have parted"
    try:
        return compare(program, trained, first)
    except Differs as differs:
        return str(differs)


def compare(program, trained, got):
    plain = Plain(program, trained, program.by_shares)
    wanted = plain.run()
    bound = HALF if program.precision in HALF_TYPES else ROUNDING
    off = max(apart(got, wanted), max(abs(loss - plain.losses[epoch]) / max(1.0, abs(plain.losses[epoch]))
                                      for epoch, loss in trained.evaluated.items()))
    if not off <= bound:
        # What rounding comes to in this program: the same batches of plain PyTorch, summed in another way.
        rounding = apart(Plain(program, trained, shares=True, backwards=True).run(), wanted)
        if not off <= 4 * rounding:
            return f"differs by {off:.2g}, where rounding makes {rounding:.2g}"
        if rounding > TOO_MUCH * bound:
            return f"rounding alone makes {rounding:.2g}: such a program tells nothing"
    if not all(math.isclose(one, other, rel_tol=1e-12) for one, other in zip(got["rates"], wanted["rates"])):
        return f"has rates {got['rates']}, and the plain loop {wanted['rates']}"
    if got["scale"] != wanted["scale"]:
        return f"has the loss scale {got['scale']}, and the plain loop {wanted['scale']}"
    return None
