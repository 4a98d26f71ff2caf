"""Tests and programs that each have a process to themselves, as a trial has: forked from one that has imported torch."""
import atexit
import functools
import os
import pathlib
import runpy
import sys
import tempfile
import traceback
import unittest

import torch
import torch._dynamo  # noqa: F401  what each child would import

torch.set_num_threads(1)


def _subtests_passed(test):
    """A subtest that has failed raises nothing: it is noted in what belongs to this process."""
    result = test._outcome.result
    for _, trace in (*result.failures, *result.errors):
        sys.stderr.write(trace)
    return test._outcome.success


def alone(test):
    """Runs the test in a process of its own, with these `--set` arguments and environment variables."""
    @functools.wraps(test)
    def run(self):
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                sys.argv = [sys.argv[0]]
                test(self)
                code = 0 if _subtests_passed(self) else 1
            except unittest.SkipTest:
                code = 77
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 77:
            self.skipTest("see above")
        self.assertEqual(code, 0, "the test's process failed, see above")
    return run


def _start(call):
    """The number of a process that does nothing but call it."""
    if (child := os.fork()) == 0:
        code = 1
        try:
            call()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    return child


def _await_success(child):
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, f"the process ended with exit code {code}, see above"


def in_child(call):
    """What `call()` gives in a process of its own, if it can be read again from its repr."""
    read, write = os.pipe()
    child = _start(lambda: os.write(write, repr(call()).encode()))
    os.close(write)
    with os.fdopen(read) as source:
        said = source.read()
    _await_success(child)
    return eval(said)  # of our own child


def output_of(program, *arguments, cwd=".", **variables):
    """What `python PROGRAM ARGUMENTS` prints in that folder with these environment variables, and that it ends well."""
    def run():
        os.chdir(cwd)
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        os.environ.update(variables)
        sys.argv = [str(program), *map(str, arguments)]
        sys.path[0] = str(pathlib.Path(program).parent)
        atexit._clear()  # what this process has registered
        try:
            try:
                runpy.run_path(str(program), run_name="__main__")
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise
            atexit._run_exitfuncs()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile("w+") as out:
        child = _start(run)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        said = out.read()
    assert code == 0, f"{program} ended with exit code {code}:\n{said}"
    return said


def resumed(program, before, epochs):
    """`program(before)`, and `program(epochs)` from the last checkpoint of that, each in a process of its own. What the
    second gives, and what is in the checkpoint."""
    def train(count, where):
        _await_success(_start(lambda: torch.save(program(count), where)))

    with tempfile.TemporaryDirectory() as folder:
        os.environ["ESPALIER_CHECKPOINT_DIR"] = folder
        train(before, f"{folder}/first")
        checkpoint = max(pathlib.Path(folder).glob("step-*.pt"), key=lambda path: int(path.stem[5:]))
        content = torch.load(checkpoint)  # the second program removes it when it has newer ones
        os.environ["ESPALIER_CHECKPOINT"] = str(checkpoint)
        train(epochs, f"{folder}/resumed")
        del os.environ["ESPALIER_CHECKPOINT"], os.environ["ESPALIER_CHECKPOINT_DIR"]
        return torch.load(f"{folder}/resumed"), content
