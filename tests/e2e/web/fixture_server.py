"""The page in front of a made-up pool: serves tuner/web/page as the service does, with its headers, and answers
/api/view from a World. Prints its address.

usage: fixture_server.py [PORT] [--trials N] [--studies N] [--nodes N] [--slots N] [--tick]
--tick: a trial reports each second."""
import argparse
import collections
import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from fixture_world import World

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                               "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
                               "trusted-types 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin"}
ALIVE_S = 15


def bundle(folder, page=ROOT / "tuner/web/page"):
    """Builds the page there, as the build does."""
    subprocess.run(["cmake", f"-DPAGE={page}", f"-DOUT={folder}", "-DESBUILD=esbuild", "-DBROTLI=brotli", "-DGZIP=gzip",
                    "-DMODULES=/usr/share/nodejs", "-P", ROOT / "tuner/web/assets/bundle.cmake"], check=True)


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser that goes in the midst of an answer is nobody's fault."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class FixtureServer:
    """Answers until close(). `writes` are the requests that were to change something."""

    def __init__(self, world, port=0):
        self.world = world
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-page-"))
        bundle(self.folder)
        self.assets = {path: (kind, (self.folder / re.sub(r"_(?=\w+$)", ".", name)).read_bytes()) for path, kind, name in
                       re.findall(r'ASSET\("(.*?)", "(.*?)", (\w+)\)', (self.folder / "web_assets.inc").read_text())}
        self.writes = []
        self.reads = collections.Counter()
        # What fails: {path: status}. Streams: what each open one is sent.
        self.broken = {}
        self.streams = []
        self.not_modified = 0
        # What each trial's processes have printed.
        self.printed = "".join(f"epoch {epoch} loss {2 / (epoch + 1):.4f}\n" for epoch in range(200)).encode()
        self.lock = threading.Lock()
        # Answers to writes wait for it.
        self.answers = threading.Event()
        self.answers.set()
        self.down = False
        handler = type("Handler", (Handler,), {"fixture": self})
        self.server = Listener(("127.0.0.1", port), handler)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.answers.set()
        self.end_streams()
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.folder)

    def send(self, event, data):
        """To every open stream."""
        with self.lock:
            for stream in self.streams:
                stream.put((event, data))

    def end_streams(self):
        with self.lock:
            for stream in self.streams:
                stream.put(None)

    def changed(self, trials=(), pool=True, decisions=True):
        """Says that the world is another."""
        self.world.revision += 1
        named = [self.world.trials[one - 1] for one in trials]
        self.world.changed_at.update((trial["id"], self.world.revision) for trial in named)
        self.send("changed", {"revision": self.world.revision, "now": self.world.now(), "pool": pool, "decisions": decisions,
                              "studies": [study["id"] for study in self.world.studies],
                              "trials": [{"id": t["id"], "study_id": t["study"]["id"], "number": t["number"]} for t in named]})

    def view(self, path, query):
        """The answer of a path below /api/view; None: there is none."""
        one = {key: values[0] for key, values in query.items()}
        whole = {key: int(one[key]) for key in ("study", "trial", "limit") if key in one}
        if path == "overview":
            return self.world.overview()
        if path == "lanes":
            return self.world.lanes(*(float(one[key]) if key in one else None for key in ("from", "to")), study=whole.get("study"))
        if path == "decisions":
            return self.world.decided(kind=one.get("kind"), before=one.get("before"), **whole)
        match = re.fullmatch(r"(studies|trials)/(\d+)(/trials|/curves|/analysis)?", path)
        if not match:
            return None
        kind, id, below = match[1], int(match[2]), match[3]
        if not 1 <= id <= len(self.world.studies if kind == "studies" else self.world.trials):
            return None
        if kind == "trials":
            return self.world.trial(id)
        if below == "/trials":
            since = int(one["changed_since"]) if "changed_since" in one else None
            return self.world.table(id, int(one.get("from", 0)), int(one.get("rows", 10000)), since)
        if below == "/analysis":
            return self.world.analysis(id, one.get("what"))
        if below == "/curves":
            chosen = [int(trial) for trial in one["trials"].split(",") if trial] if "trials" in one else None
            return self.world.curves(id, chosen, int(one["best"]) if "best" in one else None, one.get("x", "step"),
                                     int(one.get("objective", 0)))
        return self.world.study(id)

    def write(self, path, body):
        """(status, answer) of a request that changes something."""
        self.writes.append((path, body))
        match = re.fullmatch(r"/api/nodes/(.+)/drain", path)
        if match:
            name = urllib.parse.unquote(match[1])
            if body.get("undo"):
                self.world.drained.pop(name, None)
            else:
                self.world.drained[name] = self.world.now() + (body.get("within_s") or 3600)
        match = re.fullmatch(r"/api/studies/(.+)/simulations", path)
        if match:
            return self.world.simulate(urllib.parse.unquote(match[1]), body)
        match = re.fullmatch(r"/api/studies/(.+)/enqueue", path)
        if match:
            status, answer = self.world.enqueue(urllib.parse.unquote(match[1]), body)
            self.changed([answer["trial_id"]] if status == 200 else [])
            return status, answer
        match = re.fullmatch(r"/api/trials/(\d+)/clone", path)
        if match:
            status, answer = self.world.clone(int(match[1]), body)
            self.changed([int(match[1]), answer["trial_id"]] if status == 200 else [])
            return status, answer
        match = re.fullmatch(r"/api/(trials|studies)/(.+)/note", path)
        if match:
            self.world.notes[f"{'trial' if match[1] == 'trials' else 'study'} {match[2]}"] = body["text"]
        self.changed()
        return 200, {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fixture = None

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind="application/json", **headers):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": len(data), "Cache-Control": "no-store", **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def refused(self, path):
        """Whether the test wants this path to fail, which it then has."""
        status = 503 if self.fixture.down else self.fixture.broken.get(path)
        if status:
            self.reply(status, {"error": f"{path} is broken in this test", "code": "unavailable"})
        return status

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        path = address.path
        self.fixture.reads[path] += 1
        if self.refused(path):
            return
        if path == "/api/view/events":
            self.stream(urllib.parse.parse_qs(address.query))
        elif path.startswith("/api/view/"):
            answer = self.fixture.view(path.removeprefix("/api/view/"), urllib.parse.parse_qs(address.query))
            self.overview(answer) if path == "/api/view/overview" else self.reply(200, answer) if answer is not None else self.reply(404, {"error": f"there is no {path}", "code": "not_found"})
        elif path.startswith("/api/simulations/"):
            answer = self.fixture.world.simulation(path.rpartition("/")[2])
            self.reply(200, answer) if answer else self.reply(404, {"error": "simulation is not found", "code": "not_found"})
        elif re.fullmatch(r"/api/trials/\d+/output", path):
            self.output(urllib.parse.parse_qs(address.query))
        elif path in self.fixture.assets or path.startswith("/ui/"):
            kind, body = self.fixture.assets[path if path in self.fixture.assets else "/"]
            self.reply(200, body, kind)
        else:
            self.reply(404, {"error": f"there is no {path}", "code": "not_found"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        path = urllib.parse.urlsplit(self.path).path
        if self.headers.get("Content-Type") != "application/json":
            self.reply(415, {"error": "want Content-Type: application/json", "code": "invalid_argument"})
        elif self.headers.get("X-Espalier") != "1":
            self.reply(403, {"error": "want X-Espalier: 1", "code": "permission_denied"})
        elif not self.refused(path):
            status, answer = self.fixture.write(path, body)
            self.fixture.answers.wait()
            self.reply(status, answer)

    def overview(self, answer):
        tag = f'W/"{answer["incarnation"]}-{answer["revision"]}"'
        if self.headers.get("If-None-Match") != tag:
            return self.reply(200, answer, ETag=tag)
        self.fixture.not_modified += 1
        self.send_response(304)
        for name, value in {**HEADERS, "ETag": tag, "Cache-Control": "no-store"}.items():
            self.send_header(name, value)
        self.end_headers()

    def output(self, query):
        text = self.fixture.printed
        after = int(query.get("after", ["0"])[0])
        self.reply(200, text[after:], "text/plain; charset=utf-8", **{"X-Next": len(text), "X-Start": after})

    def stream(self, query):
        world, events = self.fixture.world, queue.Queue()
        with self.fixture.lock:
            self.fixture.streams.append(events)
        try:
            self.send_response(200)
            for name, value in {**HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store", "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.event("hello", {"version": 1, "incarnation": world.incarnation, "revision": world.revision, "now": world.now()})
            after = query.get("after", [f"{world.incarnation}:{world.revision}"])[0]
            if after != f"{world.incarnation}:{world.revision}":
                self.event("resync", {})
            while True:
                try:
                    event = events.get(timeout=ALIVE_S)
                except queue.Empty:
                    event = ("alive", {"now": world.now()})
                if event is None:
                    break
                self.event(*event)
        except OSError:
            pass
        finally:
            self.close_connection = True
            with self.fixture.lock:
                self.fixture.streams.remove(events)

    def event(self, name, data):
        world = self.fixture.world
        self.wfile.write(f"event: {name}\nid: {world.incarnation}:{world.revision}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("port", type=int, nargs="?", default=0)
    for name, usual in (("trials", 40), ("studies", 3), ("nodes", 4), ("slots", 8)):
        arguments.add_argument(f"--{name}", type=int, default=usual)
    arguments.add_argument("--tick", action="store_true")
    chosen = arguments.parse_args()
    fixture = FixtureServer(World(chosen.trials, chosen.studies, chosen.nodes, chosen.slots), chosen.port)
    print(fixture.base, flush=True)
    while True:
        time.sleep(1)
        if chosen.tick:
            running = [trial["id"] for trial in fixture.world.trials if trial["state"] == "running"]
            fixture.changed(running[:1])


if __name__ == "__main__":
    main()
