"""Being a program of a Ray cluster."""
import contextlib
import json
import os
import pathlib
import re
import socket

from espalier.errors import UsageError

_MAJOR = 2
_PACKAGE = f"'ray[client]>={_MAJOR}.60,<{_MAJOR + 1}'"
_CONNECT_S = 5
_ATTEMPTS = 3
_TOKEN = ("is the token its own (RAY_AUTH_TOKEN_PATH, else ~/.ray/auth_token), and is it the address of `ray start` or "
          "ray://HOST:10001?")


def check_release(release):
    """Raises UsageError where this Ray is none that we know."""
    if release.partition(".")[0] != str(_MAJOR):
        raise UsageError(f"Ray {release}: espalier.ray speaks with Ray {_MAJOR}; pip install {_PACKAGE} here and "
                         "on the cluster")


def connect(address, namespace, runtime_env=None):
    """Makes this process a program of the cluster, and returns the module ray."""
    try:
        import ray
    except ImportError as error:
        raise UsageError(f"no Ray can be imported ({error}): pip install {_PACKAGE}") from error
    check_release(ray.__version__)
    address = address or os.environ.get("RAY_ADDRESS") or "auto"
    _reach(address)
    join(ray, address, namespace=namespace, runtime_env=runtime_env, log_to_driver=False, logging_level="ERROR")
    return ray


def join(ray, address, **options):
    """Initialises the module ray; UsageError says why it cannot."""
    try:
        _init(ray, address=address, **options)
    except ray.exceptions.AuthenticationError as error:
        raise UsageError(f"Ray at {address}: {str(error).splitlines()[0]}") from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        hint = f": {_TOKEN}" if _may_be_the_token(error, address) else ""
        raise UsageError(f"Ray at {address}: {_reason(error)}{hint}") from error


def _init(ray, **options):
    """Ray's client server gives the process that it starts for a new client 30 s to answer. On a loaded machine that is
    too little now and then, though nothing is wrong."""
    for attempt in range(_ATTEMPTS):
        try:
            with _silence():  # Ray repeats in its log, each second, what it then raises
                return ray.init(**options)
        except ConnectionAbortedError:  # the client server has answered: it could not serve this client
            if attempt + 1 == _ATTEMPTS:
                raise


def _reason(error):
    """What Ray tells; of a failure on the cluster's side, which comes as a trace, its last line."""
    text = str(error).strip()
    if isinstance(error, ConnectionAbortedError):
        text = f"its client server could not serve this program, {_ATTEMPTS} times: {text.splitlines()[-1]}"
    return " ".join(text.split())


def _may_be_the_token(error, address):
    """Ray tells of a wrong token only that it could not connect in time, except in what its client's calls raise."""
    if not isinstance(error, ConnectionError) or isinstance(error, ConnectionAbortedError) or address == "auto":
        return False
    return "GRPC connection failed" not in str(error) or "UNAUTHENTICATED" in str(error)


@contextlib.contextmanager
def _silence():
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reach(address):
    """Says at once what Ray would say after a minute."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/\[\]]+?)\]?:(\d+)", address)
    if not found:
        if address == "auto":
            return
        raise UsageError(f"address {address!r}: must be HOST:PORT of `ray start --head`, ray://HOST:10001, or auto")
    try:
        with contextlib.closing(socket.create_connection((found[1], int(found[2])), _CONNECT_S)):
            pass
    except (OSError, OverflowError) as error:
        raise UsageError(f"no Ray cluster answers at {address} ({getattr(error, 'strerror', None) or error}): name the "
                         "one that `ray status` or `ray start --head` tells") from error


def runtime_env(text):
    """That of an option: JSON, or a file of it; none: what Ray has for this process."""
    if not text:
        return None
    try:
        found = json.loads(text if text.lstrip().startswith("{") else pathlib.Path(text).read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"--runtime-env {text!r}: must be a JSON object or a file of one: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"--runtime-env {text!r}: must be a JSON object")
    return found
