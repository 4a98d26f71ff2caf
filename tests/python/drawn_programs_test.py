"""Programs that are drawn at random, each a trial that is resized and loses replicas, beside plain loops of PyTorch.

usage: drawn_programs_test.py [--seed S] [--first I] [--count N] [--program JSON]

Without options it trains what the thorough suite does. One that comes to another end is made as small as it can be with that, and
printed with the command that trains it again."""
import argparse
import concurrent.futures
import dataclasses
import pathlib
import shlex
import sys
import unittest

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import SharedPoolTest  # noqa: E402

import drawn_events  # noqa: E402
from drawn_plain import fault  # noqa: E402
from drawn_programs import KINDS, PROGRAMS, SEED, count, draw, from_json, simpler  # noqa: E402
from espalier import Client  # noqa: E402

AT_ONCE = 2
LEAST_OF_A_KIND = 20
MOST_TRIED = 60  # programs, to make one that fails smaller
OPTIONS = argparse.ArgumentParser(usage=__doc__)
OPTIONS.add_argument("--seed", type=int, default=SEED)
OPTIONS.add_argument("--first", type=int, default=0)
OPTIONS.add_argument("--count", type=int, default=PROGRAMS)
OPTIONS.add_argument("--program", type=from_json, help="one, as a failure has printed it")
GIVEN = OPTIONS.parse_args([])


class DrawnPrograms(SharedPoolTest):
    SLOTS = 4 * AT_ONCE

    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        self.trained = 0

    def train(self, program):
        self.trained += 1
        name = f"{self.name}-{self.trained}"
        self.studies.add(name)
        with Client(self.http) as client:
            return drawn_events.train(program, name, self.dir / name, ROOT / "tests/python/drawn_trial.py", client)

    def smallest(self, program, wrong):
        """The same with as little as fails as well."""
        tried = 0
        while tried < MOST_TRIED:
            for less in simpler(program):
                tried += 1
                found = fault(less, self.train(less))
                if found is not None:
                    program, wrong = less, found
                    break
            else:
                break
        return program, wrong

    def say(self, program, wrong):
        small, still = self.smallest(program, wrong)
        command = shlex.join(["python3", "tests/python/drawn_programs_test.py", "--program", small.json()])
        self.fail(f"{wrong}\nThe smallest program that fails: {still}\n{command}")

    def test_programs(self):
        programs = [GIVEN.program] if GIVEN.program else [draw(GIVEN.seed, GIVEN.first + i) for i in range(GIVEN.count)]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for i, (program, trained) in enumerate(zip(programs, pool.map(self.train, programs))):
                wrong = fault(program, trained)
                sizes = "-".join(map(str, trained.sizes)) or "refused"
                print(f"program {GIVEN.first + i}: {len(trained.batches)} batches on {sizes} replicas, "
                      f"{'right' if wrong is None else wrong.splitlines()[0]}", flush=True)
                with self.subTest(i=GIVEN.first + i, program=dataclasses.asdict(program)):
                    if wrong is not None:
                        self.say(program, wrong)


class WhatIsDrawn(unittest.TestCase):
    def test_twenty_of_each_kind(self):
        counts = count(draw(GIVEN.seed, i) for i in range(PROGRAMS))
        self.assertEqual({kind: counts[kind] for kind in KINDS if counts[kind] < LEAST_OF_A_KIND}, {})

    def test_programs_are_written_and_read(self):
        for i in range(len(KINDS)):
            program = draw(GIVEN.seed, i)
            self.assertEqual(from_json(program.json()), program)
            self.assertTrue(all(less.is_legal() for less in simpler(program)))


if __name__ == "__main__":
    GIVEN, others = OPTIONS.parse_known_args()
    unittest.main(argv=[sys.argv[0], *others])
