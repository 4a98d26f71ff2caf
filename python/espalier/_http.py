"""One connection to a service's HTTP interface: TLS, the token, and the service's errors as exceptions."""
import hashlib
import http.client
import json
import re
import socket
import ssl
import threading
import time
import urllib.parse

from espalier.errors import AccessError, NotFoundError, ServiceError, UnreachableError, UsageError

_REPLICA_OR_USER_TOKEN = re.compile(r"esp1\.[^.]+\.[^.]+\.([0-9a-f]{64})")
_AGAIN_AFTER_S = 0.2
_NOT_JSON = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
# Fields that are texts: everywhere else "NaN" is what a reply has in place of a number that JSON does not have.
_TEXTS = frozenset((
    "address", "by", "checkpoint", "checkpoint_nodes", "code", "command", "constraints", "directions", "directory",
    "error", "fingerprint", "from", "given", "gpu_type", "group_phase", "held_back", "json", "kind", "last_output",
    "left_out", "like", "metric", "metrics", "name", "node", "node_template", "not_growing", "not_rehearsed", "note",
    "notice", "page", "policy", "pruner", "reason", "running", "sampler", "state", "study", "study_json", "text",
    "to", "uuid", "waits_for", "warnings"))
# Objects whose values are as users gave them, and those with figures under names that users chose.
_OF_USERS = frozenset(("parameters", "system", "system_attributes", "user", "user_attributes"))
_FIGURES_BY_NAME = frozenset(("extra", "options"))


def _read(value, name=""):
    if isinstance(value, str):
        return value if name in _TEXTS else _NOT_JSON.get(value, value)
    if isinstance(value, list):
        if name == "parameters" and all("json" in each for each in value):  # a trial's, as name and JSON text
            return {each["name"]: json.loads(each["json"]) for each in value}
        return [_read(item, name) for item in value]
    if isinstance(value, dict) and name not in _OF_USERS:
        return {key: _read(item, name if name in _FIGURES_BY_NAME else key) for key, item in value.items()}
    return value


def read_json(text):
    """A reply, or what `tuner export --format json` has written. A trial's parameters are values by name, and
    figures that JSON does not have are floats."""
    return _read(json.loads(text))


class Connection:
    """Speaks with one service, a request at a time; may be used from several threads."""

    def __init__(self, address, token="", tls_ca="", timeout_s=30.0):
        text = str(address)
        url = urllib.parse.urlsplit(text if "://" in text else f"//{text}")
        self._host = url.hostname
        try:
            self._port = url.port
        except ValueError:  # no number
            self._port = None
        if url.scheme not in ("", "http", "https") or not self._host or not self._port or url.path.strip("/"):
            raise UsageError(f"address {address!r}: must be HOST:PORT of the service's HTTP endpoint "
                             "(tuner serve --http), such as \"127.0.0.1:7078\", or a URL")
        self.address = url.netloc
        self._token = token
        found = _REPLICA_OR_USER_TOKEN.fullmatch(token)
        self._pin = found[1] if found else ""
        self._tls_ca = tls_ca
        self._tls = url.scheme == "https" or bool(self._pin or tls_ca)
        self._timeout_s = timeout_s
        self._context = None
        self._open = None
        self._lock = threading.Lock()

    @property
    def as_by_browsers(self):
        """Whether a browser of this machine reaches the service as this does: without a token, in the clear."""
        return not self._token and not self._tls

    def close(self):
        with self._lock:
            self._close()

    def call(self, method, path, body=None, query=None, key=None, counts_once=False):
        """What the service replies: its JSON, or the text of what is none. `counts_once`: by its key, however often it is
        sent; what only reads does so anyway."""
        target = "/api/" + "/".join(urllib.parse.quote(str(part), safe="") for part in path)
        if query:
            target += "?" + urllib.parse.urlencode(query)
        headers = {"Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if key is not None:
            headers["Idempotency-Key"] = key
        text = None if body is None else json.dumps(_words(plain(body)))
        with self._lock:
            status, kind, reply = self._exchange(method, target, text, headers, counts_once or method == "GET")
        if status >= 400:
            raise self._refusal(status, reply)
        return read_json(reply) if kind == "application/json" else reply.decode(errors="replace")

    # ---- one request

    def _exchange(self, method, target, text, headers, counts_once):
        # An idle connection may have been closed at the other end: then the request has not been read, and is sent
        # once more. What must not be done twice goes by a new one.
        if self._open is not None and method == "DELETE":
            self._close()
        kept = self._open is not None
        try:
            return self._send(method, target, text, headers)
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            cut_off = self._open is not None
            self._close()
            if kept:
                return self._exchange(method, target, text, headers, counts_once)
            if not cut_off or not counts_once:
                raise self._nobody(error) from error
            return self._send_again(method, target, text, headers, error)
        except http.client.HTTPException as error:
            self._close()
            said = "".join(c if c.isprintable() else "?" for c in str(error))[:80]
            raise UnreachableError(f"what answers at {self.address} does not speak HTTP ({said}): name the address of "
                                   "--http, not of --grpc", "UNAVAILABLE") from error
        except OSError as error:
            self._close()
            raise self._nobody(error) from error
        except BaseException:  # such as Ctrl-C: the reply is still to come
            self._close()
            raise

    def _send_again(self, method, target, text, headers, error):
        """A service that was there a moment ago, as one that is restarted, is asked until the call's time is over."""
        ends = time.monotonic() + self._timeout_s
        while time.monotonic() < ends:
            time.sleep(_AGAIN_AFTER_S)
            try:
                return self._send(method, target, text, headers)
            except (http.client.HTTPException, OSError):
                self._close()
            except BaseException:
                self._close()
                raise
        raise self._nobody(error) from error

    def _send(self, method, target, text, headers):
        if self._open is None:
            self._open = self._connect()
        self._open.request(method, target, None if text is None else text.encode(), headers)
        reply = self._open.getresponse()
        kind = reply.headers.get("Content-Type", "").split(";")[0].strip()
        return reply.status, kind, reply.read()

    def _close(self):
        if self._open is not None:
            self._open.close()
            self._open = None

    def _nobody(self, error):
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return UnreachableError(f"no tuner service answers at {self.address} ({why}): start one with `tuner serve "
                                "--http HOST:PORT`, or name another by address= or ESPALIER_HTTP", "UNAVAILABLE")

    def _refusal(self, status, reply):
        try:
            told = json.loads(reply)
            message, code = str(told["error"]), str(told["code"])
        except (ValueError, KeyError, TypeError):
            return ServiceError(f"{self.address} answers with status {status}: "
                                f"{reply.decode(errors='replace').strip()[:200]}")
        kinds = {"UNAUTHENTICATED": AccessError, "PERMISSION_DENIED": AccessError, "NOT_FOUND": NotFoundError,
                 "UNAVAILABLE": UnreachableError}
        return kinds.get(code, ServiceError)(message, code)

    # ---- TLS

    def _connect(self):
        if not self._tls:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_s)
        else:
            if self._context is None:
                self._context = self._pinned_context() if self._pin and not self._tls_ca else self._known_context()
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout_s,
                                                     context=self._context)
        try:
            connection.connect()
        except ssl.SSLError as error:
            raise self._doubt(error) from error
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _known_context(self):
        try:
            return ssl.create_default_context(cafile=self._tls_ca or None)
        except OSError as error:
            raise UsageError(f"certificates {self._tls_ca!r} cannot be read: {error}") from error

    def _pinned_context(self):
        """Trusts only the certificate with the token's hash; nothing is sent before it has been checked."""
        looking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        looking.check_hostname = False
        looking.verify_mode = ssl.CERT_NONE
        try:
            with socket.create_connection((self._host, self._port), self._timeout_s) as plain, \
                    looking.wrap_socket(plain, server_hostname=self._host) as tls:
                shown = tls.getpeercert(binary_form=True)
        except ssl.SSLError as error:
            raise self._doubt(error) from error
        has = hashlib.sha256(shown).hexdigest()
        if has != self._pin:
            raise UnreachableError(
                f"the service at {self.address} shows a certificate with hash {has[:16]}..., and the token is for "
                f"{self._pin[:16]}...: it is the token of another pool, the service has a new certificate (ask for a "
                "new token: `tuner token create`), or somebody stands between. Nothing was sent", "FAILED_PRECONDITION")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # it is known by its hash
        context.load_verify_locations(cadata=ssl.DER_cert_to_PEM_cert(shown))
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    def _doubt(self, error):
        if isinstance(error, ssl.SSLCertVerificationError) and self._pin and not self._tls_ca:
            why = f"shows the certificate of the token, which is not good now ({error.verify_message}): restart the " \
                  "service, which makes a new one, and ask for a new token; or set the clock of this machine"
        elif isinstance(error, ssl.SSLCertVerificationError):
            why = f"is not known by the certificates that are trusted ({error.verify_message})"
        else:
            cause = "the token holds the hash of a certificate" if self._pin else "TLS was asked for (https, or tls_ca)"
            why = f"speaks no TLS ({error.reason or error}), and {cause}: it is another service, or listens on " \
                  "loopback or with --plaintext"
        return UnreachableError(f"the service at {self.address} {why}", "FAILED_PRECONDITION")


def plain(value):
    """As it is in JSON: scalars of NumPy and torch are numbers, and tuples lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    try:
        number = value.item() if hasattr(value, "item") else value
        return json.loads(json.dumps(number))
    except (TypeError, ValueError, RuntimeError) as error:  # of several numbers, or of none
        raise UsageError(f"{value!r}: JSON has no {type(value).__name__}") from error


def _words(value):
    """What JSON has no number for, as words."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _words(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_words(item) for item in value]
    return value
