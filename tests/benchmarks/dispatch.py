#!/usr/bin/env python3
# bench: dispatch - 200 trivial commands at concurrency 2 by `tuner run`, beside a shell loop of the same commands
# builds: tuner
"""Each command tells one value by HTTP (bash alone, no other process) and ends. The shell loop runs
the same script under `xargs -P 2` against a service of its own, so that both pay for the call."""
import json
import os
import pathlib
import subprocess
import tempfile
import time

from bench_run import TUNER, export, start_service, usual_or_smoke

TRIALS, CONCURRENCY, ROUNDS = *usual_or_smoke((200, 2, 3), (10, 2, 1)),

SCRIPT = r"""#!/bin/bash
address=${ESPALIER_HTTP#http://}
exec 3<>/dev/tcp/${address%:*}/${address#*:}
body='{"step": 1, "value": 0.5}'
printf 'POST /api/trials/%s/tell HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %s\r\n\r\n%s' \
  "$ESPALIER_TRIAL_ID" "$address" "${#body}" "$body" >&3
read -r answer <&3
"""


def by_tuner(directory):
    script = directory / "trial.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    study = directory / "study.json"
    study.write_text(json.dumps({
        "name": "dispatch", "command": [str(script)], "metric": {"name": "v", "direction": "minimize"},
        "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "sampler": "random", "trials": TRIALS}))
    begin = time.monotonic()
    subprocess.run([TUNER, "run", str(study), "--dir", str(directory / "run"), "--slots",
                    str(CONCURRENCY), "--quiet"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    states = [t["state"] for t in export(directory / "run/espalier.db", "dispatch")["trials"]]
    assert states == ["TRIAL_COMPLETE"] * TRIALS, states
    return 1000 * seconds / TRIALS


def by_shell(directory):
    script = directory / "trial.sh"
    with start_service(directory / "shell.db") as (_, _, http):
        env = dict(os.environ, ESPALIER_HTTP="http://" + http, ESPALIER_TRIAL_ID="1")
        numbers = "\n".join(map(str, range(TRIALS)))
        begin = time.monotonic()
        subprocess.run(["xargs", "-P", str(CONCURRENCY), "-I{}", str(script)], input=numbers,
                       text=True, env=env, check=True)
        return 1000 * (time.monotonic() - begin) / TRIALS


def main():
    ours, shell = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(by_tuner(pathlib.Path(folder)))
            shell.append(by_shell(pathlib.Path(folder)))
            print(f"tuner {ours[-1]:.2f} ms a trial, shell {shell[-1]:.2f} ms a command", flush=True)
    middle = sorted(range(ROUNDS), key=lambda i: ours[i] / shell[i])[ROUNDS // 2]
    print(json.dumps({"ms_per_trial": round(ours[middle], 2),
                      "shell_ms_per_trial": round(shell[middle], 2),
                      "over_shell": round(ours[middle] / shell[middle], 2)}))


if __name__ == "__main__":
    main()
