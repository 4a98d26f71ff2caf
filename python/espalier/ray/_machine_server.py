"""Where the service's questions about machines come in: a socket in a folder of this user's alone."""
import contextlib
import json
import pathlib
import shutil
import socketserver
import sys
import tempfile
import threading

from espalier._errors import first_line
from espalier.ray import _ask
from espalier.ray._bounded import BoundedCalls

ANSWER_S = 20  # in which Ray must answer a question


class MachineServer:
    """Answers by `machines`, each question on a thread of its own, until it is closed."""

    def __init__(self, machines):
        self._folder = tempfile.mkdtemp(prefix="espalier-ray-")
        path = str(pathlib.Path(self._folder) / "ask")
        self.program = [sys.executable, "-I", "-S", _ask.__file__, path]
        self._server = _Server(path, _Question)
        self._server.machines = machines
        self._server.calls = BoundedCalls(ANSWER_S)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        shutil.rmtree(self._folder, ignore_errors=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False


class _Question(socketserver.StreamRequestHandler):
    def handle(self):
        question = json.loads(self.rfile.readline())
        machines = self.server.machines
        answer = {"machines": []}
        try:
            if question["verb"] == "request":
                self._call(question, machines.request, "key", "node", "command")
            elif question["verb"] == "release":
                self._call(question, machines.release, "key", "now")
            else:
                answer["machines"] = self._call(question, machines.list, "prefix")
        except Exception as error:  # Ray has many kinds, and the service is told of each
            answer = {"error": f"Ray: {first_line(error)}"}
        with contextlib.suppress(BrokenPipeError):  # who asked waits no more
            self.wfile.write(json.dumps(answer).encode())

    def _call(self, question, function, *names):
        subject = (question["verb"], question[names[0]])
        return self.server.calls.call(subject, function, *(question[name] for name in names))
