"""A real Slurm on this machine, for a test or a benchmark: up.sh and down.sh beside this file."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
UP_S = 300  # for all daemons to answer, where the machine has much else to do


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Cluster:
    def __init__(self, nodes=4, gpus=2):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-slurm-"))
        self.folder.chmod(0o755)
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin"}
        try:
            self.run(HERE / "up.sh", self.folder, nodes, gpus, timeout=UP_S)
        except BaseException:
            self.down()
            raise

    def run(self, *command, timeout=60, **keys):
        done = subprocess.run([str(word) for word in command], env=os.environ | self.env, text=True, capture_output=True,
                              timeout=timeout, **keys)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def jobs(self, states="PENDING,CONFIGURING,RUNNING,COMPLETING"):
        """(id, state, node, name) of each of our jobs that is there."""
        lines = self.run("squeue", "-h", f"--states={states}", "-o", "%i|%T|%N|%j").splitlines()
        return [fields for line in lines if (fields := line.split("|", 3))[3].startswith("espalier.")]

    def kill_controller(self):
        """As kill -9 and the loss of what it had not saved yet."""
        pid = int((self.folder / "slurmctld.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        while lives(pid):
            time.sleep(0.01)

    def start_controller(self):
        self.run("slurmctld")

    def controller_lives(self):
        return lives((self.folder / "slurmctld.pid").read_text().strip())

    def cancel(self):
        """Ends all of our jobs, by and by."""
        subprocess.run(["scancel", f"--user={os.getuid()}"], env=os.environ | self.env, capture_output=True)

    def preempt(self, seconds):
        """Has a job of the high partition take a whole node for so long; returns its id."""
        return self.run("sbatch", "--parsable", "-p", "high", "--gres=gpu:2", "--job-name=high", "--output=/dev/null",
                        input=f"#!/bin/sh\nsleep {seconds}\n").strip()

    def down(self):
        subprocess.run([str(HERE / "down.sh"), str(self.folder)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
