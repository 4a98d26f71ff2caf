"""One cell of the benchmark install, by the interpreter that runs this, which needs nothing but the standard library: a
fresh virtual environment, a torch, the wheel, and the five lines of docs/python_install.md under the installed `tuner run`.

    install_cell.py FOLDER WHEEL FIVE_LINES TORCH

FOLDER is made, TORCH is what pip is to install, or a folder that has it: then nothing is asked of an index. The last line
is a JSON object; what is wrong ends it."""
import json
import os
import pathlib
import subprocess
import sys
import time

TASK = '''"""What the five lines learn; slow until a second replica shares the work."""
import time
import torch
import espalier


class Net(torch.nn.Sequential):
    def __init__(self, width):
        super().__init__(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return len(x)

    def __getitem__(self, index):
        time.sleep(0.005 * (espalier.env.num_replicas() == 1))
        return x[index], y[index]


torch.manual_seed(1)
x = torch.randn(512, 8)
y = (x.sum(1) > 0).long()
training = Slow()
'''
# Keeps one of the two slots until the trial that is meant has trained.
NEIGHBOUR = """if [ "$ESPALIER_TRIAL_NUMBER" = 1 ]; then exec python five_lines.py; fi
until ls run/trials/five/trial-1/checkpoints/step-*.pt >/dev/null 2>&1; do sleep 0.1; done
tuner tell --final --value 9
"""
STUDY = {"name": "five", "command": ["sh", "neighbour.sh"], "trials": 2, "sampler": "random", "max_consecutive_failures": 1,
         "metric": {"name": "loss", "direction": "minimize"},
         "search_space": {"batch_size": {"_type": "choice", "_value": [32, 64]}}}
EPOCHS = 10
PATIENCE_S = 1200


def main():
    folder, wheel, five_lines = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    torch = sys.argv[4]
    folder.mkdir(parents=True)
    venv = folder / "venv"
    environment = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "OMP_NUM_THREADS": "1",
                   **{name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}}

    def run(*command):
        began = time.monotonic()
        done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            logs = "\n".join(log.read_text(errors="replace")[-4000:] for log in folder.glob("run/**/replica-*.log"))
            sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{logs}")
        return done.stdout, time.monotonic() - began

    run(sys.executable, "-m", "venv", venv)
    installs = ["pip", "install", "--quiet", "--no-cache-dir"]
    torch_s = 0.0
    if pathlib.Path(torch).is_dir():
        next(venv.glob("lib/python3*/site-packages")).joinpath("torch.pth").write_text(f"{pathlib.Path(torch).resolve()}\n")
        installs += ["--no-deps", "--no-index"]
    else:
        _, torch_s = run(*installs, torch)
    _, wheel_s = run(*installs, wheel)

    (folder / "task.py").write_text(TASK)
    (folder / "neighbour.sh").write_text(NEIGHBOUR)
    (folder / "study.json").write_text(json.dumps(STUDY))
    (folder / "five_lines.py").write_text(five_lines.read_text())
    told, run_s = run("tuner", "run", "study.json", "--dir", "run", "--slots", 2)
    exported, _ = run("tuner", "export", "five", "--db", "run/espalier.db", "--format", "json")
    _, trial = json.loads(exported)["trials"]
    values = [float(value["value"]) for value in trial["values"]]
    sizes = [(resize["from_replicas"], resize["to_replicas"]) for resize in trial["resizes"]]
    if trial["state"] != "TRIAL_COMPLETE" or len(values) != EPOCHS or sizes[:1] != [(1, 2)] or not values[-1] < values[0]:
        sys.exit(f"the trial is {trial['state']}, has reported {values} and was resized {sizes}:\n{told}")
    version, _ = run("python", "-c", "import torch; print(torch.__version__)")
    print(json.dumps({"torch": version.strip(), "torch_install_s": round(torch_s, 1), "install_s": round(wheel_s, 1),
                      "run_s": round(run_s, 1)}))


if __name__ == "__main__":
    main()
