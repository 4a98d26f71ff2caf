#!/usr/bin/env python3
"""A trial that uses nothing of Espalier but its environment variables and one command.

"Trains" by gradient descent in a narrow valley: with too small a learning rate it does not get to
the bottom, with too large a one it diverges, and momentum helps. Reports the loss of each epoch, to
be minimized.
"""
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

EPOCHS = 12
STEPS_PER_EPOCH = 8
EPOCH_TIME_S = float(os.environ.get("EPOCH_TIME_S", "0.1"))

stopping = False


def stop(signum, frame):
    """SIGTERM: pruned or stopped. The epoch is finished, then the program ends."""
    global stopping
    stopping = True


def train_epoch(x, y, vx, vy, learning_rate, momentum):
    for _ in range(STEPS_PER_EPOCH):
        # Gradient of x^2 / 2 + 10 y^2 / 2, clipped so that divergence stays a finite number.
        vx = momentum * vx - learning_rate * max(-1e6, min(1e6, x))
        vy = momentum * vy - learning_rate * max(-1e6, min(1e6, 10 * y))
        x, y = max(-1e6, min(1e6, x + vx)), max(-1e6, min(1e6, y + vy))
    return x, y, vx, vy


def tell_by_http(step, value):
    """One POST says the same as `tuner tell`, from any language. True: the trial should end."""
    url = "{}/api/trials/{}/tell".format(os.environ["ESPALIER_HTTP"].rstrip("/"),
                                         os.environ["ESPALIER_TRIAL_ID"])
    body = json.dumps({"step": step, "value": value, "final": False}).encode()
    headers = {"Content-Type": "application/json"}
    if "ESPALIER_TOKEN_FILE" in os.environ:  # the service has tokens; this is the trial's own
        with open(os.environ["ESPALIER_TOKEN_FILE"]) as token:
            headers["Authorization"] = f"Bearer {token.read().strip()}"
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bool(json.load(answer).get("should_stop", False))


def tell_by_command(step, value):
    # The agent puts `tuner` into PATH and the trial's id and the service's address into variables.
    told = subprocess.run(["tuner", "tell", "--value", repr(value), "--step", str(step)])
    # SIGTERM goes to the whole process group, so it may have ended the command as well.
    if told.returncode != 0 and not stopping:
        sys.exit(f"could not report epoch {step}: tuner tell ended with {told.returncode}")
    return False


def main():
    signal.signal(signal.SIGTERM, stop)
    learning_rate = float(os.environ["ESPALIER_PARAM_LEARNING_RATE"])
    momentum = float(os.environ["ESPALIER_PARAM_MOMENTUM"])
    print(f"learning rate {learning_rate:g}, momentum {momentum:g}", flush=True)
    x, y, vx, vy = 4.0, 1.0, 0.0, 0.0
    for epoch in range(1, EPOCHS + 1):
        x, y, vx, vy = train_epoch(x, y, vx, vy, learning_rate, momentum)
        time.sleep(EPOCH_TIME_S)
        loss = (x * x + 10 * y * y) / 2
        print(f"epoch {epoch}/{EPOCHS}: loss {loss:.6g}", flush=True)
        # Both ways do the same; the first epoch goes by HTTP where the service has that endpoint.
        by_http = epoch == 1 and os.environ.get("ESPALIER_HTTP")
        should_stop = (tell_by_http if by_http else tell_by_command)(epoch, loss)
        if stopping or should_stop:
            print(f"asked to stop after epoch {epoch}", flush=True)
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
