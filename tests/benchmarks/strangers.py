#!/usr/bin/env python3
# bench: strangers - every call of every endpoint with no, a wrong, an ended and a smaller token; 2,000 strangers of each kind at every port
# builds: tuner
"""The service is started with a word (`--token-file`), so that on loopback too nobody is let in by the kernel's word. What each
call needs is read from the table of permissions; a call that its own role's token does not open counts as well, since else
a service that refuses everybody would pass. Where the benchmark is root, another user of the machine also tries every call of HTTP
at the port that `tuner connect` holds open for us with an administrator's token. A second service speaks TLS, with two agents and
a `tuner connect`: strangers of HTTP/2 are at its gRPC port and at those where agents fetch checkpoints, and other users at what is
forwarded on loopback."""
import http.client
import json
import os
import pathlib
import re
import resource
import secrets
import subprocess
import sys
import tempfile
import time

from bench_run import ANY_PORT, TUNER, quantile, resident_mb, serve, setup_optuna, told_address, usual_or_smoke
from stranger_crowd import HTTP2_KINDS, KINDS

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parents[1] / "tuner"
OPERATION = re.compile(r'\.name = "(\w+)",\s*\.http = "([^"]*)",\s*\.role = Role::k(\w+)')
OTHER = re.compile(r'\{"([^"]+)", Role::k(\w+)(?:, true)?\}')
OPENED_BY = {"View": {"view", "submit", "administer"}, "Submit": {"submit", "administer"},
             "Administer": {"administer"}, "Agent": {"agent", "administer"}}
SILENT = usual_or_smoke(2000, 50)
CALLS = usual_or_smoke(2000, 50)
CHECKS = usual_or_smoke(200, 10)
CLOSED = 0  # no answer at all
REFUSED = {"UNAUTHENTICATED", "PERMISSION_DENIED", 401, 403, CLOSED}
NOBODY = 65534
LISTENS = "0A"  # in /proc/net/tcp
CROWD = (HERE / "stranger_crowd.py").read_text()
# Prints the status of each call; run as another user.
TRY_HTTP = """import http.client, sys
for call in sys.argv[2:]:
    method, path = call.split(" ")
    connection = http.client.HTTPConnection(sys.argv[1], timeout=60)
    try:
        connection.request(method, path, b"" if method != "GET" else None)
        print(connection.getresponse().status)
    except (OSError, http.client.HTTPException):
        print(0)
    connection.close()
"""


def call_of_http(call):
    """Method and path of a row of the table: a route, or a method of all the dashboard's routes."""
    first, second = call.split(" ")
    return (second, "/api/studies/1") if first == "dashboard" else (first, re.sub(r"\{\w+\}", "1", second))


def listening_ports(pid):
    """Of a process, by its address: ("127.0.0.1", 7077)."""
    own = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(os.readlink(link))
        except OSError:
            pass  # closed meanwhile
    for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == LISTENS and f"socket:[{inode}]" in own:
            host, port = local.split(":")
            yield ".".join(str(byte) for byte in bytes.fromhex(host)[::-1]), int(port, 16)


class Service:
    def __init__(self, folder, grpc=ANY_PORT):
        self.folder = folder
        self.word = secrets.token_hex(32)
        (folder / "word").write_text(self.word)
        (folder / "word").chmod(0o600)
        self.process = serve(folder / "pool.db", "--http", ANY_PORT, "--dashboard", ANY_PORT, "--token-file",
                             folder / "word", grpc=grpc)
        self.grpc, self.http, self.dashboard = (told_address(self.process, endpoint)
                                                for endpoint in ("gRPC", "HTTP", "dashboard"))
        self.watched = [self.process]  # that strangers may not harm

    def end(self):
        self.process.terminate()
        self.process.wait()

    def tuner(self, *arguments):
        return subprocess.run([TUNER, *arguments, "--service", self.grpc, "--token-file", self.folder / "word"],
                              check=True, capture_output=True, text=True).stdout

    def token(self, role, name):
        return self.tuner("token", "create", "--role", role, "--name", name).strip()

    def http_status(self, call, token):
        endpoint, (method, path) = self.http, call_of_http(call)
        if call.startswith("dashboard"):
            endpoint = self.dashboard
        connection = http.client.HTTPConnection(endpoint, timeout=60)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request(method, path, b"" if method != "GET" else None, headers)
        status = connection.getresponse().status
        connection.close()  # unread: the page's events do not end
        return status


def calls():
    """(call, the role that it needs) of each of the service's: the operations over gRPC and HTTP, and all others."""
    for name, route, needed in OPERATION.findall((SOURCES / "api/operations.h").read_text()):
        yield f"/espalier.v1.Tuner/{name}", needed
        if route:
            yield route, needed
    yield from OTHER.findall((SOURCES / "server/access/permissions.cc").read_text())


def tries(service):
    """(call, what is shown, token, whether it is to be let in) of each that is worth trying."""
    tokens = {role: service.token(role, role) for role in ("view", "submit", "agent", "administer")}
    ended = service.token("administer", "ended")
    service.tuner("token", "rm", "ended")
    kind, name, secret = tokens["administer"].split(".")
    wrong = ".".join((kind, name, "0" * len(secret)))
    for call, needed in calls():
        if needed == "Nobody":
            continue
        for shown, token in (("no token", ""), ("a wrong token", wrong), ("an ended token", ended), ("a word", "guess")):
            yield call, shown, token, False
        for role, token in tokens.items():
            yield call, f"the role {role}", token, role in OPENED_BY[needed]


def try_all(service, python):
    wanted = list(tries(service))
    by_grpc = [row for row in wanted if row[0].startswith("/")]
    lines = "".join(f"{call} {token}\n" for call, _, token, _ in by_grpc)
    done = subprocess.run([python, HERE / "peers" / "grpc_calls.py"], input=f"{service.grpc}\n{lines}", check=True,
                          capture_output=True, text=True)
    statuses = done.stdout.split()
    assert len(statuses) == len(by_grpc), done.stderr
    results = list(zip(by_grpc, statuses))
    results += [(row, service.http_status(row[0], row[2])) for row in wanted if not row[0].startswith("/")]
    let_in = [(row[:2], status) for row, status in results if not row[3] and status not in REFUSED]
    shut_out = [(row[:2], status) for row, status in results if row[3] and status in REFUSED]
    by_connect = try_connect(service)
    let_in += [((call, "another user's port"), status) for call, status in by_connect if status not in REFUSED]
    return {"tried": sum(not row[3] for row, _ in results) + len(by_connect), "let_in": len(let_in),
            "shut_out_of_their_own": len(shut_out), "wrongly": [str(x) for x in let_in + shut_out][:10]}


def try_connect(service):
    """What another user of the machine gets at the port of `tuner connect`."""
    if os.geteuid() != 0:
        return []
    token = service.folder / "connect.token"
    token.write_text(service.token("administer", "connect"))
    token.chmod(0o600)
    connected = subprocess.Popen([TUNER, "connect", service.http, "--listen", ANY_PORT, "--token-file", token],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = connected.stdout.readline().split(" is the service at ")[0]
        rows = [call for call, needed in calls()
                if needed != "Nobody" and not call.startswith(("/", "dashboard"))]
        tried = [" ".join(call_of_http(call)) for call in rows]
        command = ["/usr/bin/python3", "-S", "-c", TRY_HTTP, port, *tried]
        own = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        assert not REFUSED & {int(status) for status in own}, "the port is open for us"
        statuses = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/", user=NOBODY, group=NOBODY,
                                  extra_groups=[]).stdout.split()
        return list(zip(rows, map(int, statuses), strict=True))
    finally:
        connected.terminate()
        connected.wait()


def calls_s(service):
    took = []
    connection = http.client.HTTPConnection(service.http, timeout=60)
    headers = {"Authorization": f"Bearer {service.word}"}
    for _ in range(CALLS):
        begun = time.monotonic()
        connection.request("GET", "/api/studies", headers=headers)
        assert connection.getresponse().read()
        took.append(time.monotonic() - begun)
    return took


def healthz_s(service):
    """Each by a connection of its own, as an orchestrator's."""
    took = []
    for endpoint in (service.http,) * CHECKS:
        begun = time.monotonic()
        connection = http.client.HTTPConnection(endpoint, timeout=60)
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
        connection.close()
        took.append(time.monotonic() - begun)
    return took


class ReachableService(Service):
    """With TLS at its gRPC port, two agents and a `tuner connect`, whose ports are found by what they listen at."""

    def __init__(self, folder):
        super().__init__(folder, "0.0.0.0:0")
        self.grpc = f"127.0.0.1:{self.grpc.rpartition(':')[2]}"
        token = folder / "pool.db.credentials" / "administer.token"
        for name in ("one", "two"):
            self.start("agent", "--join", self.grpc, "--slots", 1, "--name", name, "--dir", folder / name, "--token-file", token)
        self.start("connect", self.grpc, "--listen", ANY_PORT, "--token-file", token)
        while len(self.fetched()) < 2 or len(self.forwarded()) < 3:
            assert all(process.poll() is None for process in self.watched), "agents and tuner connect run"
            time.sleep(0.1)

    def start(self, *arguments):
        with open(self.folder / f"told-{len(self.watched)}", "w") as told:
            self.watched.append(subprocess.Popen([TUNER, *map(str, arguments)], stdout=told, stderr=told))

    def fetched(self):
        """Where agents fetch checkpoints from one another."""
        return [address for told in self.folder.glob("told-*")
                for address in re.findall(r"fetch checkpoints of this node at (\S+:\d+)", told.read_text())]

    def forwarded(self):
        """Whose other ends the service is."""
        ports = [f"{host}:{port}" for process in self.watched[1:] for host, port in listening_ports(process.pid)]
        return [port for port in ports if port not in self.fetched()]

    def tuner(self, *arguments):
        token = self.folder / "pool.db.credentials" / "administer.token"
        return subprocess.run([TUNER, *arguments, "--service", self.grpc, "--token-file", token], check=True,
                              capture_output=True, text=True).stdout

    def end(self):
        for process in self.watched[1:]:
            process.terminate()
            process.wait()
        super().end()


def beside(service, kind, addresses, user=None):
    """What others see while a crowd of strangers of that kind is at the addresses."""
    before = [resident_mb(process.pid) for process in service.watched]
    keys = {} if user is None else {"user": user, "group": user, "extra_groups": [], "cwd": "/"}
    crowd = subprocess.Popen(["/usr/bin/python3", "-S", "-c", CROWD, kind, str(SILENT), *addresses], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, **keys)
    try:
        assert crowd.stdout.readline() == "ready\n"
        calls, checks = quantile(calls_s(service), 0.99), quantile(healthz_s(service), 0.99)
        begun = time.monotonic()
        service.tuner("ls")
        newcomer = time.monotonic() - begun
        extra = max(resident_mb(process.pid) - mb for process, mb in zip(service.watched, before))
    finally:
        crowd.stdin.close()
        crowd.wait()
    return calls, checks, extra, any(process.poll() is not None for process in service.watched), newcomer


def crowds_of(service):
    """(a name, the kind, its addresses, the user that it is) of each crowd that comes to a service."""
    if not isinstance(service, ReachableService):
        for kind in KINDS:
            yield kind, kind, [service.grpc, service.http, service.dashboard], None
        return
    tls = [f"tls://{address}" for address in (service.grpc, *service.fetched())]
    for kind in HTTP2_KINDS:
        yield f"{kind} (TLS)", kind, tls, None
    for kind in ("silent", "malformed"):
        yield f"{kind} (no TLS)", kind, [service.grpc, *service.fetched()], None
    if os.geteuid() == 0:
        for kind in ("silent", "endless_heads", "deaf", "malformed", "continuations"):
            yield f"{kind} (forwarded)", kind, service.forwarded(), NOBODY


def crowds(services):
    rows = []
    for service in services:
        alone = quantile(calls_s(service), 0.99)
        print(f"alone: calls p99 {1000 * alone:.2f} ms", flush=True)
        for name, kind, addresses, user in crowds_of(service):
            calls, checks, extra, fell, newcomer = beside(service, kind, addresses, user)
            rows.append((calls / alone, calls, checks, extra, fell))
            print(f"{name:25} calls p99 {1000 * calls:7.2f} ms   healthz p99 {1000 * checks:7.2f} ms   {extra:+6.1f} MB   "
                  f"tuner ls {newcomer:5.2f} s", flush=True)
    most = [max(column) for column in zip(*rows)]
    return {"others_p99_ratio": round(most[0], 2), "others_p99_ms": round(1000 * most[1], 2),
            "healthz_p99_ms": round(1000 * most[2], 2), "extra_mb": round(most[3], 1),
            "fell": sum(row[4] for row in rows), "strangers": SILENT}


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 65536), most))
    python = setup_optuna("5.0.0")
    with tempfile.TemporaryDirectory() as name:
        services = []
        try:
            for kind in (Service, ReachableService):
                folder = pathlib.Path(name) / kind.__name__
                folder.mkdir()
                services.append(kind(folder))
            figures = {**try_all(services[0], python), **crowds(services)}
        finally:
            for service in services:
                service.end()
    wrongly = figures.pop("wrongly")
    for line in wrongly:
        print(line)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
