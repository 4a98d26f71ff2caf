"""What the machine is, and whether the programs find what they need. See plan.py."""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

from step_tools import device, output_of, step


def said_by(*command):
    """What a tool of the machine prints, or None where there is none or it fails."""
    if not (at := shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")):
        return None
    done = subprocess.run([at, *command[1:]], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def modes():
    """Those of nvidia-smi -q by which a GPU may refuse what another does. Some are told in the line below their name."""
    lines = (said_by("nvidia-smi", "-q") or "").splitlines()
    return sorted({" ".join((line if ":" in line else line + below).split()) for line, below in zip(lines, lines[1:])
                   if re.search(r"(persistence|compute|mig) mode|fabric|(driver|cuda) version", line, re.IGNORECASE)})


@step("works", 40)
def environment():
    """What the machine is: for whoever reads the figures."""
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    facts = {"kernel": os.uname().release, "glibc": os.confstr("CS_GNU_LIBC_VERSION"), "processors": os.cpu_count(),
             "shm_mb": shutil.disk_usage("/dev/shm").total >> 20,
             "locked_memory": "unlimited" if locked == resource.RLIM_INFINITY else f"{locked >> 10} KiB",
             "library_path": os.environ.get("LD_LIBRARY_PATH", ""), "modes": modes(),
             "driver_libraries": [line.strip() for line in (said_by("ldconfig", "-p") or "").splitlines()
                                  if re.search(r"libcuda\.so|nvidia-ml", line)]}
    probe = ("import torch, json; print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda,"
             " 'nccl': list(torch.cuda.nccl.version()) if torch.cuda.is_available() else None,"
             " 'gpus': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]}))")
    interpreter = os.environ.get("ESPALIER_TORCH_PYTHON", sys.executable)
    facts |= json.loads(output_of([interpreter, "-c", probe]).splitlines()[-1])
    facts["nvidia_smi"] = (said_by("nvidia-smi", "-L") or "").splitlines()
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        facts["pidfd"] = True
    if device() == "cuda" and not facts["gpus"]:
        raise AssertionError(f"PyTorch sees no GPU: {facts}")
    return facts


@step("works", 20)
def libraries():
    """Every program finds what it is linked with, and in it what it calls."""
    missing = {}
    folder = pathlib.Path(os.environ["ESPALIER_BIN"])
    programs = [path for path in sorted(folder.iterdir()) if path.is_file()]
    for path in [*programs, *sorted([*folder.glob("lib/libespalier_*.so"), *folder.parent.glob("lib/libespalier_*.so")])]:
        done = subprocess.run(["ldd", "-r", path], capture_output=True, text=True, check=False)
        lost = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines()
                if "not found" in line or "undefined symbol" in line]
        if lost:
            missing[path.name] = lost[:3]
    if missing:
        raise AssertionError(f"not found: {missing}")
    return {"programs": len(programs)}
