"""Where the interpreter is that drives a browser."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
NAME = "ESPALIER_BROWSER_PYTHON"


def run_inside(script):
    """Goes on as `script` in the interpreter that has Selenium, unless this is it. The variable may name another one."""
    if NAME not in os.environ:
        done = subprocess.run([ROOT / "scripts" / "setup-browser.sh"], check=True, stdout=subprocess.PIPE, text=True)
        os.environ[NAME] = str(pathlib.Path(done.stdout.strip()) / "venv" / "bin" / "python")
    if sys.executable != os.environ[NAME]:
        os.execv(os.environ[NAME], [os.environ[NAME], script, *sys.argv[1:]])
