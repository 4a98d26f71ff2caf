"""Trains nothing, without torch: each rank has a loader, a process in a session of its own, and stays."""
import subprocess
import sys
import time

import plan


def main():
    plan.arguments()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", str(plan.given.notes)], start_new_session=True)
    plan.follow(plan.FAILS_AT, 0.5)
    while True:
        time.sleep(1)


main()
