"""What a test runs and reads: the programs that must be built for it, and a digest that tells whether any of it has changed.

Programs are found by name: a script uses each program of the build that its text, or that of the modules of ours which it
imports, names. So it may be thought to use one too many, and never one too few, unless it makes up a name from pieces; then a
line `# builds: NAME...` says it.
"""
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cases import ROOT, folders_of_modules  # noqa: E402

SCRIPTS = (".py", ".sh", ".js")
# What a build makes programs of: where that differs, they do.
COMPILED = (".cc", ".h", ".cu", ".cuh", ".proto", ".cmake", ".ts", ".tsx", ".css", ".html", "CMakeLists.txt", "CMakePresets.json")
LINKED = re.compile(r"^(\S+): CXX_(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY|STATIC_LIBRARY)_LINKER")


@dataclasses.dataclass
class Test:
    name: str
    command: list  # without the words that launch it
    environment: list


def registered(build):
    """The tests of a configured build, by name."""
    listed = subprocess.run(["ctest", "--preset", build, "--show-only=json-v1"], cwd=ROOT, text=True, capture_output=True,
                            check=True)
    tests = {}
    for test in json.loads(listed.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        command = test.get("command", [])
        launched = next((at for at, word in enumerate(command) if word.endswith("tests/suite/launch.py")), None)
        tests[test["name"]] = Test(test["name"], command if launched is None else command[launched + 3:],
                                   properties.get("ENVIRONMENT", []))
    return tests


def outputs(build):
    """Programs and libraries of a configured build: name -> path below its folder. Of static ones the target's name."""
    listed = subprocess.run(["ninja", "-C", f"build/{build}", "-t", "targets", "all"], cwd=ROOT, text=True, capture_output=True,
                            check=True)
    found = {}
    for line in listed.stdout.splitlines():
        linked = LINKED.match(line)
        if linked:
            name = pathlib.Path(linked[1]).name
            found[re.sub(r"^lib|\.(so|a)$", "", name)] = linked[1]
    return found


@functools.lru_cache(maxsize=None)
def _text(script):
    return script.read_text(errors="replace")


def _modules(script):
    """Scripts of ours that it imports or names."""
    text, places = _text(script), folders_of_modules(script)
    names = {word for line in re.findall(r"^\s*(?:from\s+(\S+)\s+import|import\s+(.+))", text, re.M)
             for word in re.findall(r"\w+", " ".join(line))}
    for name in names:
        for place in places:
            if (place / f"{name}.py").exists():
                yield place / f"{name}.py"
                break
    for word in set(re.findall(r"[\w./-]+\.(?:py|sh|js)\b", text)) - {"scripts/test.sh"}:  # which runs them
        for place in (*places, ROOT):
            if (place / word).is_file():
                yield (place / word).resolve()
                break


def scripts(test):
    """Those that the test runs, as far as they are below the root: paths."""
    todo = []
    for word in [*test.command, *(text.partition("=")[2] for text in test.environment)]:
        path = pathlib.Path(word)
        if path.suffix in SCRIPTS and path.is_file():
            todo.append(path)
    if test.name.startswith("bench_smoke_"):
        name = test.name.removeprefix("bench_smoke_")
        todo += [path for path in (ROOT / "tests/benchmarks").glob(f"{name}.*")]
    found = set()
    while todo:
        path = todo.pop().resolve()
        if path in found or ROOT not in path.parents or ".deps" in path.parts:
            continue
        found.add(path)
        todo += _modules(path)
    return found


def programs(test, built):
    """Paths below the build's folder, of `built` (outputs()), that must be there before the test runs. A static library only
    where a line `# builds:` names it."""
    texts = [_text(path) for path in scripts(test)]
    words = {pathlib.Path(word).name for text in [*test.command, *test.environment] for word in re.split("[=:;]", text)}
    words |= {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    words = {re.sub(r"^lib|\.(so|a)$", "", word) for word in words}
    if test.name.startswith("bench_smoke_"):
        words.add("bench_" + test.name.removeprefix("bench_smoke_"))
    asked = {word for text in texts for line in re.findall(r"^(?:#|//) builds: (.*)$", text, re.M) for word in line.split()}
    return sorted({built[word] for word in words if word in built and (not built[word].endswith(".a") or word in asked)})


def _digest_of(paths):
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        digest.update(os.fspath(path).encode() + b"\0")
        try:
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
        except OSError:
            digest.update(b"none")
    return digest.hexdigest()


def files_of_the_tree():
    """Those that are tracked, or would be; of a tree without Git all that no script has made."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True,
                            capture_output=True)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name]
    made = {"build", ".deps", "demo", "dist", "__pycache__"}
    return [path for path in ROOT.rglob("*") if path.is_file() and not made & set(path.relative_to(ROOT).parts)]


class Digests:
    """Of tests, in one look at the tree."""

    def __init__(self):
        files = files_of_the_tree()
        # Other scripts of tests are nobody else's business; and what is compiled is seen in the programs.
        self.common = _digest_of(path for path in files if not path.name.endswith(COMPILED) and
                                 not (path.suffix == ".py" and ROOT / "tests" in path.parents))
        self.whole = _digest_of(files)
        self.built = {}

    def of(self, test, build):
        """Of what the test's outcome may depend on: its programs, its scripts, and all data and documents of the tree."""
        if test.name.startswith("architecture"):
            return self.whole
        if build not in self.built:
            self.built[build] = outputs(build)
        used = [ROOT / "build" / build / path for path in programs(test, self.built[build])]
        return _digest_of([*used, *scripts(test)]) + self.common
