"""Tests that each have a process to themselves, as a trial has: forked from one that has imported torch."""
import functools
import os
import sys
import traceback
import unittest

import torch
import torch._dynamo  # noqa: F401  what each child would import

torch.set_num_threads(1)


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
                code = 0
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
