"""Slots of the pool for a trial of Optuna's."""
from __future__ import annotations

import dataclasses
import logging
import threading
import time

import grpc
import optuna
from optuna.storages import BaseStorage, GrpcStorageProxy

from espalier_optuna import _messages
from espalier_optuna._channel import Pauses, RETRY_S

WAIT_S = 30.0  # of one call that waits for slots
GRACE_S = 30.0  # that an answer may take beyond that
RENEWALS_PER_LEASE = 3
LONGEST_RENEWAL_S = 20.0  # between two of them

_logger = logging.getLogger("espalier_optuna")


class SlotsError(RuntimeError):
    """What may be wrong with slots."""


class SlotsRefused(SlotsError):
    """The service says that the trial cannot have these slots, and why."""


class SlotsTimeout(SlotsError, TimeoutError):
    """They did not become free in time."""


class SlotsLost(SlotsError):
    """The trial holds its slots no longer: their node went away, or the service heard nothing of the client for too long."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """One slot: its node's name, its place there, and the GPU that it is on, if any (name and UUID)."""

    node: str
    index: int
    gpu: str = ""
    gpu_uuid: str = ""


def slots(trial: optuna.Trial, n: int = 1, *, node: str | None = None, timeout: float | None = None) -> HeldSlots:
    """Holds `n` slots of the pool for the trial, as a context: they are its own within, and given back at its end.

    Entering waits until the slots are free. The pool's own trials make room for up to the share of the pool that clients
    have. The slots are on one node if any node of the pool is large enough.

    Args:
        trial: of a study on an Espalier service, by :func:`storage` or Optuna's own `GrpcStorageProxy`.
        n: how many.
        node: the name of the node that they must be on, such as this host's (`tuner pool` lists them). None: any.
        timeout: seconds to wait at most; None: for as long as it takes.

    Raises (on entering):
        SlotsRefused: if no wait can help: more slots than the node has, an unknown node, a trial that has ended.
        SlotsTimeout: if the slots were not free within `timeout`.
        SlotsError: if the service cannot be reached.
    """
    channel = channel_of(trial.storage, "espalier_optuna.storage")
    if n < 1:
        raise ValueError(f"n must be 1 or more slots, got {n}")
    return HeldSlots(channel, trial, n, node, timeout)


def channel_of(store: BaseStorage, instead: str) -> grpc.Channel:
    """The channel to the service that keeps the study."""
    if not isinstance(store, GrpcStorageProxy):
        raise TypeError(f"the trial's study is kept in a {type(store).__name__}, and the pool is that of an Espalier service: "
                        f"see {instead}")
    return store._channel


class HeldSlots:
    """What :func:`slots` gives. A thread renews the hold until it ends.

    Attributes:
        slots: one :class:`Slot` each.
        lost: why the trial holds them no longer, while the context lasts; None: it holds them.
    """

    def __init__(self, channel: grpc.Channel, trial: optuna.Trial, n: int, node: str | None,
                 timeout: float | None) -> None:
        def call(name, reply):
            return channel.unary_unary(f"/espalier.v1.Slots/{name}",
                                       request_serializer=lambda message: message.SerializeToString(),
                                       response_deserializer=reply.FromString)

        self._acquire = call("Acquire", _messages.HeldSlots)
        self._renew = call("Renew", _messages.HeldSlots)
        self._release = call("Release", _messages.ReleaseSlotsResponse)
        self._trial_id = trial._trial_id
        self._name = f"trial {trial.number}"
        self._n, self._node, self._timeout = n, node, timeout
        self._wanted = "1 slot" if n == 1 else f"{n} slots"
        self._ended = threading.Event()
        self._renewer: threading.Thread | None = None
        self.slots: list[Slot] = []
        self.lost: str | None = None

    @property
    def devices(self) -> list[str]:
        """UUIDs of the GPUs that the slots are on, each once."""
        return list(dict.fromkeys(slot.gpu_uuid for slot in self.slots if slot.gpu_uuid))

    def environment(self) -> dict[str, str]:
        """Variables for a program that runs on these slots and no others: CUDA_VISIBLE_DEVICES (empty: no GPU), ESPALIER_SLOTS."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.devices), "ESPALIER_SLOTS": str(len(self.slots))}

    def check(self) -> None:
        """Raises SlotsLost if the trial holds its slots no longer. For objectives that look now and then."""
        if self.lost is not None:
            raise SlotsLost(f"{self._name}: {self.lost}")

    def __enter__(self) -> HeldSlots:
        try:
            lease_s = self._wait()
        except BaseException:
            self._give_back()  # whoever stops waiting, by Ctrl-C say, leaves no request behind
            raise
        self._renewer = threading.Thread(target=self._keep, args=(lease_s,), name="espalier-slots", daemon=True)
        self._renewer.start()
        return self

    def __exit__(self, *error) -> None:
        self._ended.set()
        if self._renewer is not None:
            self._renewer.join(GRACE_S)
        self._give_back()

    def _wait(self) -> float:
        """Until the slots are there; returns their lease."""
        end = None if self._timeout is None else time.monotonic() + self._timeout
        pauses = Pauses(RETRY_S)
        told = ""
        while True:
            wait_s = WAIT_S if end is None else max(0.0, min(WAIT_S, end - time.monotonic()))
            # The first answer comes at once: it says what a long wait is for.
            request = _messages.AcquireSlotsRequest(trial_id=self._trial_id, slots=self._n, node=self._node or "",
                                                    wait_s=wait_s if told else 0.0)
            try:
                held = self._acquire(request, timeout=wait_s + GRACE_S)
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                    raise SlotsRefused(f"{self._name}: {error.details()}") from error
                if not pauses.wait():
                    raise SlotsError(f"{self._name}: the service cannot be reached: {error.details()}") from error
                continue
            pauses = Pauses(RETRY_S)
            if held.slots:
                self.slots = [Slot(slot.node, slot.index, slot.gpu.name, slot.gpu.uuid) for slot in held.slots]
                return held.lease_s
            if held.waits_for != told:
                _logger.info("%s waits for %s: %s", self._name, self._wanted, held.waits_for)
            told = held.waits_for or "slots"
            if end is not None and time.monotonic() >= end:
                raise SlotsTimeout(f"{self._name} waited {self._timeout:g} s for {self._wanted}: {held.waits_for}")

    def _keep(self, lease_s: float) -> None:
        pause_s = min(lease_s / RENEWALS_PER_LEASE, LONGEST_RENEWAL_S)
        while not self._ended.wait(pause_s):
            try:
                self._renew(_messages.TrialSlotsRequest(trial_id=self._trial_id), timeout=GRACE_S)
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.NOT_FOUND):
                    continue  # the service is away; a lease begins anew when it is back
                if not self._ended.is_set():
                    self.lost = error.details()
                    _logger.warning("%s lost its slots: %s", self._name, self.lost)
                return
            except ValueError:
                return  # the channel was closed

    def _give_back(self) -> None:
        try:
            self._release(_messages.TrialSlotsRequest(trial_id=self._trial_id), timeout=GRACE_S)
        except (grpc.RpcError, ValueError) as error:
            # Its lease ends the hold; what the objective returned must not be lost for that.
            _logger.warning("%s could not give back its slots: %s", self._name, error)
