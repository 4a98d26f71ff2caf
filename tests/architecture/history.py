"""What the rules need to know of git: the subjects of the commits that a checkout has."""

import os
import subprocess


def environment():
    """This process's, without what git tells its hooks of a repository, which may be another one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def subjects(root, first):
    """[(short id, subject)] of all commits after `first` but merges, the newest first. None where they cannot be
    known: no git, no repository, or one without `first`, such as an unpacked archive or a shallow clone."""
    def told(*arguments):
        try:
            done = subprocess.run(["git", "-C", str(root), *arguments], env=environment(), text=True, encoding="utf-8",
                                  errors="replace", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        except OSError:
            return None
        return done.stdout if done.returncode == 0 else None

    if told("cat-file", "-e", f"{first}^{{commit}}") is None:
        return None
    log = told("log", "--no-merges", "--format=%h%x09%s", f"{first}..HEAD")
    return None if log is None else [tuple(line.split("\t", 1)) for line in log.splitlines()]
