"""How many times a service parses the text of a study for one `tuner submit`: asked of the built programs."""

import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

PATIENCE_S = 20
PARSED = re.compile(r"^espalier_study_texts_parsed_total (\d+)", re.MULTILINE)
STUDY = {"command": ["true"], "trials": 1, "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}}


def programs(root):
    """The folder of built programs, from the environment or a build of the tree; None: there is none."""
    folder = Path(os.environ.get("ESPALIER_BIN") or root / "build" / "ci" / "bin")
    return folder if (folder / "tuner").exists() else None


def parses_a_submit(root):
    """None where there are no programs, or they are of a release that does not count it."""
    folder = programs(root)
    if folder is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        study, told = Path(scratch) / "study.json", Path(scratch) / "told"
        study.write_text(json.dumps(STUDY), encoding="utf-8")
        with open(told, "w", encoding="utf-8") as out:
            service = subprocess.Popen([folder / "tuner", "serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--db",
                                        Path(scratch) / "pool.db"], stdout=out, stderr=out, cwd=scratch)
        try:
            grpc, http = (_told(service, told, endpoint) for endpoint in ("gRPC", "HTTP"))
            before = _parsed(http)
            subprocess.run([folder / "tuner", "submit", study, "--service", grpc], check=True, capture_output=True)
            return None if before is None else _parsed(http) - before
        finally:
            service.kill()
            service.wait()


def _told(service, path, endpoint):
    """HOST:PORT of an endpoint, as the service prints it."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until and service.poll() is None:
        line = re.search(rf"^{endpoint} (?:\w+://)?([^\s/]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if line:
            return line[1]
        time.sleep(0.02)
    raise RuntimeError(f"tuner serve did not print its {endpoint} address:\n{path.read_text(encoding='utf-8')}")


def _parsed(http):
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=PATIENCE_S) as answer:
        found = PARSED.search(answer.read().decode())
    return int(found[1]) if found else None
