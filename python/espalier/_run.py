"""A study of `espalier.tune` while it runs: by a `tuner run` of this machine, or by a service."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from espalier import _child, _objective, _tuner, client
from espalier._http import plain, read_json
from espalier.errors import EspalierError, NotFoundError, UnreachableError, UsageError

_CHILD = str(pathlib.Path(_child.__file__).resolve())
_BAD_INPUT = 2  # what tuner exits with
_LOOK_SHARE = 9  # times as long as a look takes passes until the next, but not more than:
_LONGEST_PAUSE_S = 10  # what took longer has most often waited, for a disk or for a service that was away
_LEAVE_S = 120  # for the trials of a study that has ended to give their slots back
_STUDY, _OUTPUT, _DATABASE = "study.json", "tuner.out", "espalier.db"
# What `tuner run` says of its options and files, in the words of `tune`.
_WORDING = (("start over with --fresh", "fresh=True starts over"),
            ("Put it back in .* \\(only", "Put it back (only"),
            ("choose another name or another --dir", "give another name or directory"),
            (r"metric\.direction", "direction"), (r"slots\.(min|max)", r"\1_slots"))
# What it says of its page, which may take several lines, and of the record that it leaves.
_PAGE = re.compile(r"^  page      (.*(?:\n {12}\S.*)*)", re.MULTILINE)
_RECORD = re.compile(r"^report: (.*)$", re.MULTILINE)
_STOPPING = "stopping: trials save what they can (interrupt again: at once)"


def follow(run, display, every_s):
    """Until it has ended. The first Ctrl-C stops the study, as it does to `tuner run`; the second ends the call."""
    stopped = False
    while True:
        try:
            began = time.monotonic()
            details = run.look()
            if details is not None:
                display.page = run.page(details)
                display.begin(run.heading(details))
                display.show(details)
            # Where a look takes long, because there are many trials, they are fewer.
            if run.ended(max(every_s, min(_LOOK_SHARE * (time.monotonic() - began), _LONGEST_PAUSE_S))):
                return
        except KeyboardInterrupt:
            if stopped:
                raise
            stopped = True
            run.stop()  # before it is said: who then interrupts again ends the call
            display.say(_STOPPING)


def folder_for(name, directory):
    """Where the run is kept, the study's name, and whether the folder is new. A name or a directory may be those of an
    earlier run, which is taken up again. Without them the folder is a new one: espalier-runs/NAME, NAME-2 and so on."""
    if directory is not None:
        path = pathlib.Path(directory).absolute()
        is_new = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        # What is left of a run that ended before it had a database is not somebody else's.
        if any(path.iterdir()) and not (path / _DATABASE).exists() and not (path / _OUTPUT).exists():
            raise UsageError(f"directory {str(directory)!r}: holds other files and no study: want a new or an empty "
                             "folder, or that of an earlier run")
        return path, name.given or _name_in(path) or name.otherwise, is_new
    runs = pathlib.Path("espalier-runs").absolute()
    if name.given:
        if os.sep in name.given or name.given in (".", ".."):
            raise UsageError(f"name {name.given!r}: must have letters, digits, _, - and . alone")
        return folder_for(name, runs / name.given)
    for each in name.candidates():
        try:
            (runs / each).mkdir(parents=True)
            return runs / each, each, True
        except FileExistsError:
            continue


def _name_in(path):
    """Of the study that an earlier run has left there; None if there is none."""
    if not (path / _DATABASE).exists() or not (path / _STUDY).exists():
        return None
    return json.loads((path / _STUDY).read_text(encoding="utf-8"))["name"]


def earlier_study(tuner, directory, name):
    """The study that an earlier run has left in its folder; None if there is none."""
    if not (directory / _DATABASE).exists():
        return None
    done = _export(tuner, directory, name)
    return read_json(done.stdout)["study"] if done.returncode == 0 else None


def _export(tuner, directory, name):
    return subprocess.run([tuner, "export", name, "--db", str(directory / _DATABASE), "--format", "json"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)


def had_ended(earlier, study):
    """Whether `study` is what it was before this run, because it was over. One that has failed is taken up, and fails
    again at once."""
    if not is_over(earlier):
        return False
    if earlier["state"] == study["state"] == "STUDY_FAILED":
        return _trials_of(earlier) == _trials_of(study)
    return earlier["ended_at"] == study["ended_at"]


def is_over(study):
    """Whether nothing of it is left to run: it is complete, or all of its trials have failed."""
    if study is None:
        return False
    return study["state"] == "STUDY_COMPLETE" or \
        study["state"] == "STUDY_FAILED" and 0 < study["max_trials"] <= _trials_of(study)


def goes_on(earlier):
    """What to say of a study that goes on with the trials of an earlier run."""
    failed = earlier["trials_by_state"].get("FAIL", 0)
    told = f", {failed} of them failed" if failed else ""
    return f'study "{earlier["name"]}" goes on after {_trials_of(earlier)} trials{told} (fresh=True starts over)'


def _trials_of(study):
    return sum(study["trials_by_state"].values())


class FormerFiles:
    """What `tune` writes into a run's folder, as it was before: a run that is refused changes nothing there."""

    def __init__(self, directory):
        self._files = {path: path.read_bytes() if path.exists() else None
                       for path in (directory / name for name in (_STUDY, _objective.FILE, _OUTPUT))}

    def put_back(self):
        for path, content in self._files.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)


class LocalRun:
    """A `tuner run` below this process. It stops when this process ends, in whatever way. `undo` is called where it is
    refused, before anything has begun in its folder."""

    def __init__(self, tuner, study, directory, options, undo=None):
        self.name = study["name"]
        self._tuner = tuner
        self._undo = undo
        self.directory = directory
        path = directory / _STUDY
        path.write_text(json.dumps(study, indent=1))
        self._before = self._service_file()
        self.service = None
        self._page = None
        self._output = open(directory / _OUTPUT, "w+")
        environment = dict(os.environ, PYTHONPATH=_objective.search_path())
        self._process = _start([sys.executable, "-I", _CHILD, str(int(signal.SIGTERM)), str(os.getpid()), self._tuner,
                                "run", str(path), "--dir", str(directory), *options], self._output, environment)

    def look(self, values=False):
        """Its details, with curves if `values`; None while there is no service."""
        if self.service is None:
            found = self._service_file()
            if found is None or found == self._before:
                return None
            self.service = client.Client.at_home(client.address_in(self.directory))
        try:
            return self.service.details(self.name, values)
        except (UnreachableError, NotFoundError):
            return None

    def ended(self, wait_s):
        # What a study of seconds has come to is shown at its end, and the service is there in no time.
        try:
            self._process.wait(wait_s if self.service else 0.05)
            return True
        except subprocess.TimeoutExpired:
            return False

    def heading(self, details):
        """What runs, and where; None before its slots are there."""
        slots = details["pool"]["slots"]
        if not slots and not details["trials"] and self._process.poll() is None:
            return None
        return f"{_heading(details, slots)}, in {self.directory}"

    def page(self, details):
        """Where its page is, as `tuner run` says, and where nobody answers any more, nothing."""
        if self._process.poll() is not None:
            return []
        if self._page is None:  # not by self._output, whose place in the file the other process shares
            told = _PAGE.search(self.said())
            self._page = [line.strip() for line in told[1].splitlines()] if told else []
        return self._page

    def said(self):
        """What `tuner run` has printed so far."""
        return (self.directory / _OUTPUT).read_text(encoding="utf-8", errors="replace")

    def record(self):
        """The file of the page that it has left; None if there is none."""
        self._output.seek(0)
        told = _RECORD.findall(self._output.read())
        return self.directory / told[-1] if told else None

    def how_to_go_on(self):
        usual = pathlib.Path("espalier-runs").absolute() / self.name == self.directory
        return f"tune(..., {f'name={self.name!r}' if usual else f'directory={str(self.directory)!r}'}) goes on"

    def stop(self):
        self._process.send_signal(signal.SIGINT)

    def details(self):
        """Everything about the study, once it has ended."""
        code = self._process.returncode
        if code == _BAD_INPUT:
            complaint = self._complaint().replace(f"{self.directory / _STUDY}: ", "")
            if self._undo is not None:
                self._undo()
            for theirs, ours in _WORDING:
                complaint = re.sub(theirs, ours, complaint)
            raise UsageError(complaint)
        done = _export(self._tuner, self.directory, self.name)
        if done.returncode != 0:
            raise EspalierError(self._complaint() or done.stderr.strip())
        details = read_json(done.stdout)
        if details["study"]["state"] == "STUDY_RUNNING":
            raise EspalierError(f"tuner run ended with {code}, and the study goes on when it is started again: "
                                f"{self._complaint()}")
        return details

    def close(self):
        """Ends what is still there: at once where it was asked to stop before."""
        if self.service is not None:
            self.service.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()
        self._output.close()

    def _complaint(self):
        self._output.seek(0)
        lines = self._output.read().strip().splitlines()
        told = [line.removeprefix("tuner run: ") for line in lines if line.startswith("tuner run: ")]
        return "\n".join(told or lines[-20:])

    def _service_file(self):
        """What tells one from another: each is written anew."""
        try:
            found = (self.directory / "service.json").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def submitted(name, study, service):
    """Hands a study to a service, under the name that was given, or one that is not taken there; returns it."""
    try:
        taken = {each["name"] for each in service.studies()}
        chosen = name.given or next(each for each in name.candidates() if each not in taken)
        service.submit({**study, "name": chosen})
        return chosen
    except BaseException:
        service.close()
        raise


class ServiceRun:
    """A study of a running service."""

    directory = None

    def __init__(self, name, service):
        self.name = name
        self._client = service
        self._details = None
        self._ended_at = None
        self._silent_since = None

    def look(self):
        try:
            self._details = self._client.details(self.name, values=False)
            self._silent_since = None
            return self._details
        except UnreachableError:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > client._AWAY_S:
                raise
            self._details = None
            return None

    def ended(self, wait_s):
        if self._details is not None and self._details["study"]["state"] != "STUDY_RUNNING":
            self._ended_at = self._ended_at or time.monotonic()
            held = any(holder["study"] == self.name for node in self._details["pool"]["nodes"]
                       for holder in node["holders"])
            if not held or time.monotonic() - self._ended_at > _LEAVE_S:
                return True
        time.sleep(wait_s)
        return False

    def heading(self, details):
        slots = details["pool"]["slots"]
        nobody = "" if slots else ", which has no slots yet: tuner agent --join HOST:PORT adds those of a machine"
        return f"{_heading(details, slots)}, in the pool at {self._client.address}{nobody}"

    def page(self, details):
        """Where a browser of this machine finds it: as this program does, if that shows no token."""
        served = details["pool"].get("page")
        if not served:
            return []
        if self._client._connection.as_by_browsers:
            return [f"http://{self._client.address}/"]
        return [served, "asks for a token once"]

    def record(self):
        return None

    def how_to_go_on(self):
        return f"Client({self._client.address!r}).resume({self.name!r}) goes on"

    def stop(self):
        self._client.stop(self.name)

    def details(self):
        return self._client.details(self.name)

    def close(self):
        self._client.close()


def _heading(details, slots):
    study = details["study"]
    trials = study["max_trials"]
    told = f": {trials} trial{'s' if trials > 1 else ''}" if trials else ""
    return f"study {study['name']}{told}" + (f" on {slots} slot{'s' if slots > 1 else ''}" if slots else "")


def _start(command, output, environment):
    """In a session of its own: Ctrl-C in a terminal goes to this process, which says what the other is to do. What is
    said before that listens waits: `tuner run` lets these signals in when it does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                env=environment, start_new_session=True)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def tuner_program():
    """That of the installed wheel, or the one in PATH."""
    if _tuner.PROGRAM.exists():
        return str(_tuner.PROGRAM)
    found = shutil.which("tuner")
    if found is None:
        raise UsageError("there is no program `tuner` beside this espalier, nor in PATH: install Espalier's wheel "
                         "(docs/python_install.md), or add the build's bin folder to PATH")
    return found


def json_of(study):
    """As it is in JSON."""
    return json.loads(json.dumps(plain(study)))
