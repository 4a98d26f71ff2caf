"""What repeated runs of tests have found (repeats.txt): how often each ran at which commit, and how often it failed.

A line is `TEST BUILD COMMIT RUNS FAILED RUNS_BESIDE_LOAD FAILED_BESIDE_LOAD`. Lines of other commits stay, so that runs of
several days add up; a line with failures stays until their reason is found, and then the commit that mends it takes the line
away. A commit with "+" had changes that were not committed.
"""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = pathlib.Path(__file__).parent / "repeats.txt"
HEADER = __doc__.strip().splitlines()


def commit():
    """Of the checkout, in ten digits, or "none" where it has no history."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, text=True, capture_output=True)
    head = git("rev-parse", "--short=10", "HEAD")
    if head.returncode:
        return "none"
    changed = git("status", "--porcelain", "--", ".", f":!{PATH.relative_to(ROOT)}").stdout
    return head.stdout.strip() + ("+" if changed else "")


def read(path=PATH):
    """(test, build, commit) -> [runs, failed, runs beside load, failed beside load]."""
    counts = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        words = line.split()
        if line.startswith("#") or len(words) != 7:
            continue
        counts[tuple(words[:3])] = [int(word) for word in words[3:]]
    return counts


def add(results, beside_load=False, path=PATH, at=None):
    """Adds runs: (test, build) -> (runs, failed)."""
    counts, at = read(path), at or commit()
    for (test, build), (runs, failed) in results.items():
        count = counts.setdefault((test, build, at), [0, 0, 0, 0])
        count[2 if beside_load else 0] += runs
        count[3 if beside_load else 1] += failed
    lines = [f"# {line}".rstrip() for line in HEADER]
    lines += [" ".join([*key, *map(str, count)]) for key, count in sorted(counts.items())]
    path.write_text("\n".join(lines) + "\n")
