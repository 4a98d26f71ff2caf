"""Optuna's storage on the service."""
from __future__ import annotations

from collections.abc import Sequence
import math

import grpc
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import GrpcStorageProxy
from optuna.storages._grpc.auto_generated import api_pb2_grpc
from optuna.storages._grpc.client import GrpcClientCache
from optuna.trial import TrialState

from espalier_optuna._channel import Pauses, RETRY_S, open_channel


def storage(address: str, token: str | None = None, tls_ca: str | None = None, *,
            retry_s: float = RETRY_S) -> EspalierStorage:
    """Optuna's studies on the Espalier service at `address`.

    Use it wherever Optuna takes a storage. It can be pickled, and what is pickled holds the token.

    Args:
        address: HOST:PORT, where the service answers gRPC.
        token: your token, if the service demands one. If it ends with the hash of the service's certificate (as those of
            `tuner token create` do), the connection uses TLS and accepts only that certificate.
        tls_ca: a file with the certificates (PEM) by which the service's own one is judged, for a service with
            `--tls-cert`. Without it, and without a hash in the token, nothing is encrypted.
        retry_s: for so many seconds calls are made again while the service does not answer, because it restarts say. This
            holds for all but the deletion of studies and the taking of a queued trial: nobody could tell whether one that
            got no answer was heard. 0: every call fails at once, as Optuna's own storage does.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise ValueError(f'address "{address}": must be HOST:PORT, such as "127.0.0.1:7077"')
    return EspalierStorage(host, int(port), token, tls_ca, retry_s)


class EspalierStorage(GrpcStorageProxy):
    """What :func:`storage` makes."""

    def __init__(self, host: str, port: int, token: str | None, tls_ca: str | None, retry_s: float) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._tls_ca = tls_ca
        self._retry_s = retry_s
        self._setup()

    def _open(self) -> grpc.Channel:
        return open_channel(f"{self._host}:{self._port}", self._token, self._tls_ca, self._retry_s)

    def _setup(self) -> None:
        self._channel = self._open()
        self._stub = api_pb2_grpc.StorageServiceStub(self._channel)
        self._cache = GrpcClientCache(self._stub)

    def wait_server_ready(self, timeout: float | None = None) -> None:
        """Waits until the service can be reached, for `timeout` seconds at most."""
        try:
            with self._open() as channel:
                grpc.channel_ready_future(channel).result(timeout=timeout)
        except grpc.FutureTimeoutError as error:
            raise ConnectionError(f"no service at {self._host}:{self._port} within {timeout} s") from error

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """As in Optuna. How a trial ended is told again until the service has heard it."""
        if not state.is_finished():
            return super().set_trial_state_values(trial_id, state, values)
        pauses = Pauses(self._retry_s)
        repeated = False
        while True:
            try:
                return super().set_trial_state_values(trial_id, state, values)
            except UpdateFinishedTrialError:
                # It was heard the first time.
                if repeated and self._has_ended_so(trial_id, state, values):
                    return True
                raise
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or not pauses.wait():
                    raise
                repeated = True

    def _has_ended_so(self, trial_id: int, state: TrialState, values: Sequence[float] | None) -> bool:
        trial = self.get_trial(trial_id)
        if trial.state != state or values is None:
            return trial.state == state
        kept = trial.values or []
        return len(kept) == len(values) and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(kept, values))
