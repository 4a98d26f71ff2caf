"""The NNI that the tests speak with, with our package installed and registered in folders of their own."""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
INSIDE = "ESPALIER_NNI_TEST_FOLDER"


def run_inside(script):
    """Goes on as `script` in NNI's interpreter, unless this is it; home, configuration and packages are a fresh folder's."""
    if INSIDE in os.environ:
        atexit.register(shutil.rmtree, os.environ[INSIDE], ignore_errors=True)
        return
    python, folder, environment = make()
    os.execve(python, [python, script, *sys.argv[1:]], dict(environment, **{INSIDE: str(folder)}))


def make():
    """NNI's interpreter, a new folder with our package, and the variables that make NNI use it."""
    done = subprocess.run([ROOT / "scripts" / "setup-nni.sh"], check=True, stdout=subprocess.PIPE, text=True)
    nni = pathlib.Path(done.stdout.strip())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-nni-"))
    python = str(nni / "venv" / "bin" / "python")
    install(python, nni / "build", folder)
    (folder / "home").mkdir()
    environment = dict(os.environ, HOME=str(folder / "home"), NNI_CONFIG_DIR=str(folder / "config"),
                       PYTHONPATH=str(folder / "site"), PYTHONWARNINGS="ignore",
                       PATH=f"{folder / 'site' / 'bin'}:{nni / 'venv' / 'bin'}:{os.environ['PATH']}")
    for name in ("ESPALIER_TOKEN_FILE", "ESPALIER_TLS_CA", "NODE_OPTIONS"):
        environment.pop(name, None)
    subprocess.run([python, folder / "site" / "bin" / "espalier-nni", "register"], check=True, env=environment,
                   stdout=subprocess.DEVNULL, cwd="/")
    return python, folder, environment


def install(python, build_tools, folder):
    """As `pip install adapters/nni` does; into a folder, since the interpreter is shared."""
    # setuptools writes beside the sources.
    shutil.copytree(ROOT / "adapters" / "nni", folder / "source", ignore=shutil.ignore_patterns("service", "__pycache__"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
                    "--no-build-isolation", "--target", folder / "site", folder / "source"], check=True,
                   env=dict(os.environ, PYTHONPATH=str(build_tools)))
