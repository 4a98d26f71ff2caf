"""A client of a running service: the commands of `tuner` and the HTTP interface (docs/http.md), as methods.

Studies, trials and nodes are dicts with the keys of docs/openapi.json, with two differences: a trial's "parameters" are
values by name, as `tuner show` prints them ("optimizer/sgd/momentum" in a nested choice), and figures that are NaN or
infinite are floats. Times are seconds, and moments are seconds since the Unix epoch.

Methods raise NotFoundError, AccessError, UnreachableError or another ServiceError (espalier.errors).
"""
import difflib
import json
import os
import pathlib
import time
import typing
import uuid
from collections.abc import Iterator

from espalier import _rows, _study_file
from espalier._http import Connection
from espalier.errors import NotFoundError, UnreachableError, UsageError

if typing.TYPE_CHECKING:
    import pandas

DEFAULT_ADDRESS = "127.0.0.1:7078"
_AWAY_S = 60  # for which one that watches puts up with a service that does not answer
_Path = str | os.PathLike


class Client:
    """Talks to one service; nothing is sent before the first call. May be used from several threads.

    address: HOST:PORT of its HTTP endpoint (`tuner serve --http`), or a URL (default: ESPALIER_HTTP, then
        127.0.0.1:7078).
    directory: instead of an address, the folder of a `tuner run`. If that needs no token, it is shown none that the
        environment names.
    token_file: file with your token (default: ESPALIER_TOKEN_FILE). If the token ends in the hash of a certificate,
        the connection uses TLS and accepts only that certificate.
    tls_ca: PEM file of the certificates to trust (default: ESPALIER_TLS_CA).
    timeout_s: seconds that one request may take.
    """

    _operations: dict | None = None  # what the service has said of itself

    def __init__(self, address: str | None = None, *, directory: _Path | None = None, token_file: _Path | None = None,
                 tls_ca: _Path | None = None, timeout_s: float = 30.0) -> None:
        if address is not None and directory is not None:
            raise UsageError(f"address {address!r} and directory {str(directory)!r}: leave one of the two out")
        if directory is not None:
            address = address_in(directory)
        if directory is None or _needs_token(directory):
            token_file = token_file or os.environ.get("ESPALIER_TOKEN_FILE")
            tls_ca = tls_ca or os.environ.get("ESPALIER_TLS_CA")
        self._connection = Connection(address or os.environ.get("ESPALIER_HTTP") or DEFAULT_ADDRESS,
                                      _read_token(token_file) if token_file else "", os.fspath(tls_ca or ""), timeout_s)

    @classmethod
    def at_home(cls, address: str) -> "Client":
        """A client for a `tuner run` of this user on this machine: without a token, whatever the environment says."""
        client = cls.__new__(cls)
        client._connection = Connection(address)
        return client

    @property
    def address(self) -> str:
        """HOST:PORT of the service's HTTP endpoint."""
        return self._connection.address

    def close(self) -> None:
        """Closes the connection; the next call opens another one."""
        self._connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: typing.Any) -> None:
        self.close()

    def call(self, operation: str, **fields: typing.Any) -> typing.Any:
        """Calls an operation by its name in docs/openapi.json, also one that has no method here:
        `client.call("PinTrial", trial_id=4, slots=2)`. Fields that the path names go there, the others into the body (of
        a GET: into the query). Returns its answer as the service gives it."""
        known = self._known_operations()
        if operation not in known:
            nearest = difflib.get_close_matches(operation, known, 1)
            raise UsageError(f"operation {operation!r}: the service has none of that name"
                             + (f"; did you mean {nearest[0]!r}?" if nearest else ""))
        method, path = known[operation]
        names = [part[1:-1] for part in path if part.startswith("{")]
        missing = [name for name in names if name not in fields]
        if missing:
            raise UsageError(f"operation {operation!r}: {missing[0]!r} is needed")
        path = [fields[part[1:-1]] if part.startswith("{") else part for part in path]
        rest = {name: value for name, value in fields.items() if name not in names}
        if method == "GET":
            return self._call(method, path, query={name: int(value) if isinstance(value, bool) else value
                                                   for name, value in rest.items()} or None)
        return self._call(method, path, rest or None, key=uuid.uuid4().hex)

    # ---- studies

    def submit(self, study: dict | _Path, exist_ok: bool = False) -> dict:
        """Creates a study and returns it. `study`: a dict with the keys of a study file (tuner/study_file/README.md),
        or the path of such a file. With `exist_ok`, an existing study with the same definition is returned."""
        query = {"exist_ok": 1} if exist_ok else None
        return self._make(["studies"], _study_file.load(study), query)

    def studies(self) -> list[dict]:
        """All studies, without their trials."""
        return self._call("GET", ["studies"])["studies"]

    def study(self, study: str) -> dict:
        """The study of that name, without its trials."""
        return self.details(study, values=False, active=True)["study"]

    def details(self, study: str, values: bool = True, active: bool = False) -> dict:
        """The study, its trials, its decisions, and the pool. Without `values`, curves are left out; with `active`,
        ended trials except the best."""
        query = {"values": int(values), "active": int(active)}
        return self._call("GET", ["studies", study], query=query)

    def trials(self, study: str, values: bool = True) -> list[dict]:
        """The study's trials, ordered by number; without `values`, their curves are left out."""
        return self._call("GET", ["studies", study, "trials"], query={"values": int(values)})["trials"]

    def trial(self, study: str, number: int) -> dict:
        """The trial with that number, without its curve."""
        found = [trial for trial in self.trials(study, values=False) if trial["number"] == number]
        if not found:
            raise NotFoundError(f'study "{study}" has no trial {number}', "NOT_FOUND")
        return found[0]

    def best(self, study: str) -> dict:
        """The best trial of a study with one direction, with its curve as it was reported."""
        return self._call("GET", ["studies", study, "best"])

    def watch(self, study: str, every_s: float = 1.0) -> Iterator[dict]:
        """Yields the study's details (without curves) now and whenever they change, polled every `every_s` seconds. The
        last ones are those of the study when it has ended or is stopped. A service that has answered once may be away for
        a minute, e.g. because it is started again."""
        shown = heard_at = None
        while True:
            try:
                details = self.details(study, values=False)
            except UnreachableError:
                if heard_at is None or time.monotonic() - heard_at > _AWAY_S:
                    raise
                time.sleep(min(every_s, 1.0))
                continue
            heard_at = time.monotonic()
            ended = details["study"]["state"] != "STUDY_RUNNING"
            seen = _what_changes(details)
            if ended or seen != shown:
                yield details
            if ended:
                return
            shown = seen
            time.sleep(every_s)

    def wait(self, study: str, every_s: float = 1.0) -> dict:
        """Waits until the study has ended or is stopped, and returns it."""
        for details in self.watch(study, every_s):
            pass
        return details["study"]

    def stop(self, study: str) -> dict:
        """Stops the study; it can be resumed. Returns it."""
        return self._call("POST", ["studies", study, "stop"])

    def resume(self, study: str, trials: int | None = None, time_limit_s: float | None = None) -> dict:
        """Resumes a stopped or ended study, if wanted with new limits: `trials` in all, or seconds of running time."""
        return self._call("POST", ["studies", study, "resume"],
                          {"max_trials": trials or 0, "time_limit_s": time_limit_s or 0})

    def delete(self, study: str) -> dict:
        """Deletes a study with its trials (`tuner rm`). One of the pool that runs has to be stopped first. Returns what
        it was."""
        return self._call("DELETE", ["studies", study])

    def export(self, study: str, steps: bool = True) -> list[dict]:
        """Rows (dicts) with the columns of `tuner export`: one per trial and step, or one per trial without `steps`."""
        details = self.details(study, values=steps)
        return _rows.step_rows(details) if steps else _rows.trial_rows(details)

    def dataframe(self, study: str, steps: bool = False) -> "pandas.DataFrame":
        """These rows, by default one per trial, as a pandas DataFrame."""
        return _rows.dataframe(self.export(study, steps))

    # ---- trials that the pool runs

    def pin(self, study: str, trial: int, slots: int) -> dict:
        """Pins the trial to a number of slots."""
        return self._call("POST", ["trials", self.trial(study, trial)["id"], "pin"], {"slots": slots})

    def unpin(self, study: str, trial: int) -> dict:
        """Lets the policy decide the trial's slots again."""
        return self.pin(study, trial, 0)

    def cancel(self, study: str, trial: int, pruned: bool = False, reason: str = "") -> dict:
        """Ends a trial of the pool, as failed or as pruned; `reason` goes into the study's record. (A client ends its
        own with `tell`: of those this raises AccessError.)"""
        body = {"state": "pruned" if pruned else "fail", **({"reason": reason} if reason else {})}
        return self._call("POST", ["trials", self.trial(study, trial)["id"], "cancel"], body)

    def logs(self, study: str, trial: int, lines: int | None = None) -> str:
        """The output of its processes: the newest MiB, or only the last `lines` lines of it."""
        text = self._call("GET", ["trials", self.trial(study, trial)["id"], "output"])
        return text if lines is None else "".join(text.splitlines(keepends=True)[-lines:] if lines else [])

    def enqueue(self, study: str, parameters: dict, user_attributes: dict | None = None) -> dict:
        """Adds a trial with these parameters, for the pool (sampler `queue`) or for the client that asks next."""
        body = {"parameters": parameters, **({"user_attributes": user_attributes} if user_attributes else {})}
        return self._make(["studies", study, "enqueue"], body)

    def clone(self, study: str, trial: int, parameters: dict) -> dict:
        """Adds a trial of the pool that begins with a copy of this one's newest checkpoint, while this one goes on, and has
        these parameters in place of its own, such as {"lr": 0.01}."""
        return self._make(["trials", self.trial(study, trial)["id"], "clone"], {"parameters": parameters})

    # ---- trials that this program runs, by the "trial_id" of ask

    def ask(self, study: str, parameters: dict | None = None) -> dict:
        """Returns a trial to run now; parameters that are not given are drawn by the sampler."""
        return self._make(["studies", study, "ask"], {"parameters": parameters} if parameters else {})

    def report(self, trial_id: int, step: int, value: float | None = None, rank: int | None = None,
               ranks: int | None = None, should_save: bool = False,
               extra: dict[str, float] | None = None) -> dict:
        """Reports an intermediate value, and returns the pruner's decision: {"prune": bool, "reason": ..., "note": ...}.
        The first value of a step stands; where another one is told, "note" says so.

        `extra` has further figures of the step by name, of a trial that the pool runs: other metrics of its study.

        Where several processes run the trial, each says which it is, `rank` of `ranks`: equal values count once, and all get
        the same decision at a step. Without a value it only asks for that or, with `should_save`, for "save": whether a
        program of the pool saves and ends, as its trial goes on elsewhere or later."""
        given = {"step": step, "value": value, "rank": rank, "ranks": ranks, "should_save": should_save or None,
                 "extra": extra or None}
        return self._call("POST", ["trials", trial_id, "report"], {k: v for k, v in given.items() if v is not None})

    def should_prune(self, trial_id: int) -> dict:
        """The pruner's decision, as from `report`."""
        return self._call("GET", ["trials", trial_id, "should-prune"])

    def tell(self, trial_id: int, value: float | None = None, state: str | None = None,
             values: list[float] | None = None) -> dict:
        """Says how the trial ended: "complete" with its value (or one for each direction), "pruned" or "fail"."""
        has_value = value is not None or values is not None
        given = {"value": value, "values": values, "state": state or ("complete" if has_value else None)}
        return self._call("POST", ["trials", trial_id, "tell"], {k: v for k, v in given.items() if v is not None})

    def record(self, trial_id: int) -> dict:
        """The trial as clients see it."""
        return self._call("GET", ["trials", trial_id])

    def attributes(self, trial_id: int, **user: typing.Any) -> dict:
        """Sets user attributes of a trial that has not ended."""
        return self._call("POST", ["trials", trial_id, "attributes"], {"user": user})

    def acquire_slots(self, trial_id: int, slots: int, node: str | None = None) -> dict:
        """Requests slots of the pool for the trial. Repeat the call until it holds them, and while it does, to renew
        them: see docs/http.md."""
        return self._call("POST", ["trials", trial_id, "slots"], {"slots": slots, **({"node": node} if node else {})})

    def release_slots(self, trial_id: int) -> None:
        """Gives the trial's slots back, or withdraws its request."""
        self._call("DELETE", ["trials", trial_id, "slots"])

    # ---- the pool

    def pool(self) -> dict:
        """The pool: its nodes, and what holds each slot."""
        return self._call("GET", ["pool"])

    def set_policy(self, name: str, **options: float) -> dict:
        """Sets the policy that divides the pool's slots (`tuner pool --policy`)."""
        return self._call("POST", ["pool", "policy"], {"name": name, "options": options})

    def drain(self, node: str, within_s: float = 0, undo: bool = False) -> dict:
        """Drains a node: trials still there after `within_s` seconds are shrunk, or paused with a checkpoint; 0: they
        may run to their end. `undo`: the node takes trials again."""
        return self._call("POST", ["nodes", node, "drain"], {"within_s": within_s, "undo": undo})

    def _known_operations(self):
        """{name: (method, segments of the path after /api)}, as the service describes itself."""
        if self._operations is None:
            described = self._call("GET", ["openapi.json"])["paths"]
            self._operations = {entry["operationId"]: (method.upper(), path.split("/")[2:])
                                for path, entries in described.items() if path.startswith("/api/")
                                for method, entry in entries.items() if method != "parameters"}
        return self._operations

    def _call(self, method, path, body=None, query=None, key=None):
        return self._connection.call(method, path, body, query, key)

    def _make(self, path, body, query=None):
        """The key makes a request that is sent again one and the same."""
        return self._connection.call("POST", path, body, query, uuid.uuid4().hex, counts_once=True)


def address_in(directory: _Path) -> str:
    """Where the `tuner run` of this directory answers."""
    address = _service_file(directory).get("http")
    if not address:
        raise UsageError(f"the tuner in {directory} has no HTTP endpoint")
    return address


def _needs_token(directory):
    return _service_file(directory).get("needs_token") is not False


def _service_file(directory):
    path = pathlib.Path(directory) / "service.json"
    try:
        told = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"no tuner runs in {directory} (there is no {path}): start it with `tuner run STUDY.json "
                         f"--dir {directory}`") from error
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise UsageError(f"{path} does not name a service; remove it")
    return told


def _read_token(path):
    try:
        token = pathlib.Path(path).read_text().partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"token file {str(path)!r}: {getattr(error, 'strerror', None) or 'it is no text'}") from error
    if not token:
        raise UsageError(f"token file {str(path)!r}: its first line must hold the token, and is empty")
    return token


def _what_changes(details):
    """What tells one state of a study from the next; time that passes is no change."""
    of_time = ("elapsed_s", "remaining_s", "slot_seconds", "spent", "payments")
    lasting = lambda record: {key: value for key, value in record.items() if key not in of_time}
    return lasting(details["study"]), [lasting(trial) for trial in details["trials"]], details["decisions"]
