"""Channels to the service: its token in each call, TLS, and calls that are made again while it restarts."""
from __future__ import annotations

import collections
import hashlib
import hmac
import random
import socket
import ssl
import time
import uuid

import grpc

RETRY_S = 60.0  # for which a call is made again while the service does not answer
FIRST_PAUSE_S = 0.1  # between two of them; doubles
LONGEST_PAUSE_S = 5.0
SERVICE_NAME = "tuner.espalier"  # to which services make their own certificates out

# Made twice these do the same as made once.
_REPEATABLE = frozenset(
    ["/optuna.StorageService/" + name for name in (
        "GetStudyIdFromName", "GetStudyNameFromId", "GetStudyDirections", "GetStudyUserAttributes",
        "GetStudySystemAttributes", "GetAllStudies", "GetTrialIdFromStudyIdTrialNumber", "GetTrial", "GetTrials",
        "SetStudyUserAttribute", "SetStudySystemAttribute", "SetTrialParameter", "SetTrialIntermediateValue",
        "SetTrialUserAttribute", "SetTrialSystemAttribute")]
    + ["/espalier.v1.Slots/" + name for name in ("Acquire", "Renew", "Release")]
    # As train makes them: a study that may exist, a trial by its key. Who cancels a trial twice is told that it has ended.
    + ["/espalier.v1.Tuner/" + name for name in ("CreateStudy", "Enqueue", "GetTrial", "GetTrialOutput", "CancelTrial")])
# By a key the service knows that it has done these already.
_KEYED = frozenset("/optuna.StorageService/" + name for name in ("CreateNewStudy", "CreateNewTrial"))


class _Details(
        collections.namedtuple("_Details", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")),
        grpc.ClientCallDetails):
    pass


class _Interceptor(grpc.UnaryUnaryClientInterceptor):
    """Adds the token and a key, and repeats what may be repeated."""

    def __init__(self, token: str | None, retry_s: float) -> None:
        self._token = token
        self._retry_s = retry_s

    def intercept_unary_unary(self, continuation, client_call_details, request):
        method = client_call_details.method
        if isinstance(method, bytes):
            method = method.decode()
        metadata = list(client_call_details.metadata or [])
        if self._token:
            metadata.append(("authorization", f"Bearer {self._token}"))
        if method in _KEYED:
            metadata.append(("idempotency-key", str(uuid.uuid4())))
        details = _Details(method, client_call_details.timeout, metadata, client_call_details.credentials,
                           getattr(client_call_details, "wait_for_ready", None),
                           getattr(client_call_details, "compression", None))
        pauses = Pauses(self._retry_s if method in _REPEATABLE or method in _KEYED else 0)
        while True:
            answer = continuation(details, request)
            if answer.code() != grpc.StatusCode.UNAVAILABLE or not pauses.wait():
                return answer


class Pauses:
    """Ever longer pauses between attempts, for `seconds` in all."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._pause_s = FIRST_PAUSE_S

    def wait(self) -> bool:
        """Whether there is time for another attempt; returns after the pause before it."""
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            return False
        # Not all clients of a service at once.
        time.sleep(min(left_s, self._pause_s * random.uniform(0.5, 1)))
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return True


def open_channel(address: str, token: str | None, tls_ca: str | None, retry_s: float) -> grpc.Channel:
    """A channel to HOST:PORT. `tls_ca` is a file of certificates in PEM. Without it a token that ends with the hash of the
    service's certificate (as `tuner token create` makes them) says whom to trust; else nothing is encrypted."""
    # A proxy for the web is none for the tuner.
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]
    pin = _pin_of(token)
    if tls_ca is not None:
        with open(tls_ca, "rb") as file:
            channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()), options=options)
    elif pin is not None:
        roots = _pinned_certificate(address, pin, retry_s)
        options.append(("grpc.ssl_target_name_override", SERVICE_NAME))
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options=options)
    else:
        channel = grpc.insecure_channel(address, options=options)
    return grpc.intercept_channel(channel, _Interceptor(token, retry_s))


def _pin_of(token: str | None) -> str | None:
    parts = (token or "").strip().split(".")
    return parts[3] if len(parts) == 4 and parts[0] == "esp1" else None


def _pinned_certificate(address: str, pin: str, retry_s: float) -> bytes:
    """The certificate that the service shows, PEM, if it is the one that the token is for. Nothing was sent before."""
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the hash says whom to trust
    pauses = Pauses(retry_s)
    while True:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=10) as raw:
                with context.wrap_socket(raw) as connection:
                    shown = connection.getpeercert(binary_form=True)
            break
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError) as error:
            # A service that stops, and a network that breaks, do so as well.
            if not pauses.wait():
                raise ConnectionError(f"{address} broke the connection off while TLS was agreed on") from error
        except ssl.SSLError as error:
            raise ConnectionError(f"the service at {address} speaks no TLS, and the token holds the hash of a certificate: it "
                                  "is another service, or was started with --plaintext") from error
        except OSError:
            if not pauses.wait():
                raise
    if not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), pin):
        raise ConnectionError(f"the service at {address} shows another certificate than the token is for: the token is of "
                              "another pool, the service has a new certificate (ask for a new token), or somebody stands "
                              "between. Nothing was sent")
    return ssl.DER_cert_to_PEM_cert(shown).encode()
