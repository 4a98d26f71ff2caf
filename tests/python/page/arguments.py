"""A program of docs/python.md that has arguments of its own."""
import argparse
import sys

import espalier

sys.argv[1:] = ["--lr", "0.3", "--set", "lr=0.5"]
trial = espalier.trial()
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
arguments = trial.arguments(parser.parse_args())
trial.report(1, arguments.lr)
