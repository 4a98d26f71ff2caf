#!/usr/bin/env python3
# bench: pool_scale - 1,000 agents over TLS, 4,096 slots, 1,000 trials that report once a second
# builds: tuner bench_pool_load
"""The service is the real one; the agents are connections of one program that speaks their protocol (pool_load.cc).
Beside them a client asks for trials of another study by HTTP, reports and tells, a few calls a second."""
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time

from bench_run import ANY_PORT, BIN, quantile, serve, told_address, usual_or_smoke

AGENTS = usual_or_smoke(1000, 20)
SLOTS = usual_or_smoke(4096, 80)
TRIALS = usual_or_smoke(1000, 20)
SECONDS = usual_or_smoke(60, 5)
CLIENT_PAUSE_S = 0.05
SPACE = {"lr": {"_type": "uniform", "_value": [0, 1]}}
METRIC = {"name": "v", "direction": "minimize"}
POOL_STUDY = {"name": "pool", "metric": METRIC, "search_space": SPACE, "sampler": "random", "pruner": "median",
              "trials": 1_000_000, "max_concurrent_trials": TRIALS, "slots": {"min": 1, "max": 8},
              "command": ["/bin/true"], "directory": "/"}
CLIENT_STUDY = {"name": "asked", "metric": METRIC, "search_space": SPACE, "sampler": "random", "ask_and_tell": True}


class Client(threading.Thread):
    """One trial after another until told to end; how long each call took is in `took_s`."""

    def __init__(self, address, trust):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPSConnection(address, context=trust, timeout=60)
        self.took_s = []
        self.over = False
        self.failure = None

    def call(self, path, body=None):
        begun = time.monotonic()
        self.connection.request("POST", path, json.dumps(body or {}), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        self.took_s.append(time.monotonic() - begun)
        assert answer.status < 300, (path, answer.status, text)
        time.sleep(CLIENT_PAUSE_S)
        return json.loads(text)

    def run(self):
        try:
            while not self.over:
                trial = f"/api/trials/{self.call('/api/studies/asked/ask')['trial_id']}"
                for step in range(1, 4):
                    self.call(f"{trial}/report", {"step": step, "value": 1 / step})
                self.call(f"{trial}/tell", {"state": "complete", "value": 0.5})
        except (OSError, AssertionError, http.client.HTTPException) as error:
            self.failure = error


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid):
    (line,) = (x for x in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], cwd=folder, check=True,
                   stderr=subprocess.DEVNULL)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_certificate(folder)
        service = serve(folder / "pool.db", "--http", ANY_PORT, "--tls-cert", folder / "cert.pem", "--tls-key",
                        folder / "key.pem")
        try:
            grpc, rest = told_address(service), told_address(service, "HTTP")
            trust = ssl.create_default_context(cafile=str(folder / "cert.pem"))
            client = Client(rest, trust)
            for study in (POOL_STUDY, CLIENT_STUDY):
                client.call("/api/studies", study)
            load = subprocess.Popen([os.path.join(BIN, "bench_pool_load"), grpc, folder / "cert.pem", str(AGENTS),
                                     str(SLOTS), str(SECONDS)], stdout=subprocess.PIPE, text=True)
            assert load.stdout.readline() == "ready\n", "the agents did not get into the pool"
            client.took_s.clear()
            client.start()
            cpu, begun = cpu_s(service.pid), time.monotonic()
            line = load.stdout.readline()
            cores = (cpu_s(service.pid) - cpu) / (time.monotonic() - begun)
            client.over = True
            client.join()
            assert client.failure is None, client.failure
            assert load.wait() == 0 and line, "the load generator failed"
            figures = {"client_p99_ms": round(1000 * quantile(client.took_s, 0.99), 1),
                       "client_calls": len(client.took_s), "service_cores": round(cores, 2),
                       "rss_mb": round(peak_mb(service.pid), 1), "agents": AGENTS, "slots": SLOTS, "trials": TRIALS}
        finally:
            service.terminate()
            service.wait()
    print(json.dumps({**json.loads(line), **figures}))


if __name__ == "__main__":
    main()
