#!/usr/bin/env python3
# bench: startup - from starting `tuner run` to the first trial's first instruction, beside starting the command from a shell
# builds: tuner
import json
import pathlib
import subprocess
import tempfile
import time

from bench_run import TUNER, quantile, usual_or_smoke

ROUNDS = usual_or_smoke(15, 2)


def main():
    ours, shell = [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder)
            stamp = directory / "stamp"
            script = directory / "trial.sh"
            # EPOCHREALTIME is bash's own clock: no process is started to read it.
            script.write_text(f'#!/bin/bash\necho "$EPOCHREALTIME" > "{stamp}"\n'
                              'if [ -n "$ESPALIER_TRIAL_ID" ]; then tuner tell --final --value 1; fi\n')
            script.chmod(0o755)
            study = directory / "study.json"
            study.write_text(json.dumps({
                "name": "startup", "command": [str(script)], "trials": 1, "sampler": "random",
                "metric": {"name": "v", "direction": "minimize"},
                "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}}))
            begin = time.time()
            subprocess.run([TUNER, "run", str(study), "--dir", str(directory / "run"), "--slots", "1",
                            "--quiet"], check=True, stdout=subprocess.DEVNULL)
            ours.append(1000 * (float(stamp.read_text()) - begin))
            begin = time.time()
            subprocess.run(["/bin/sh", "-c", str(script)], check=True)
            shell.append(1000 * (float(stamp.read_text()) - begin))
    print(json.dumps({"first_trial_ms": round(quantile(ours, 0.5), 1),
                      "first_trial_worst_ms": round(max(ours), 1),
                      "shell_ms": round(quantile(shell, 0.5), 1)}))


if __name__ == "__main__":
    main()
