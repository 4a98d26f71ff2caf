"""Where the Optuna is that the tests speak with."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))


def folder(version="5.0.0"):
    done = subprocess.run([ROOT / "scripts" / "setup-optuna.sh", version], check=True, stdout=subprocess.PIPE, text=True)
    return pathlib.Path(done.stdout.strip())


def python(version="5.0.0"):
    return str(folder(version) / "venv" / "bin" / "python")


def run_inside(script, version="5.0.0"):
    """Goes on as `script` in that Optuna's interpreter, unless this is it."""
    wanted = python(version)
    if os.environ.get("ESPALIER_OPTUNA_PYTHON") != wanted:
        os.environ["ESPALIER_OPTUNA_PYTHON"] = wanted
        os.execv(wanted, [wanted, script, *sys.argv[1:]])
