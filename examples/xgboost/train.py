#!/usr/bin/env python3
"""A script with XGBoost that has never heard of a tuner: boosted trees tell a ring of noisy points from what it surrounds."""
import argparse

import numpy
import xgboost


def rings(count, rng):
    x = rng.normal(size=(count, 10))
    radius = numpy.linalg.norm(x[:, :3], axis=1) + 0.3 * rng.normal(size=count)
    return xgboost.DMatrix(x, label=radius > 1.5)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eta", type=float, default=0.3)
    parser.add_argument("--max-depth", type=int, default=6)
    parser.add_argument("--booster", choices=["gbtree", "dart"], default="gbtree")
    parser.add_argument("--rate-drop", type=float, default=0.0, help="of dart: the part of trees that a round leaves out")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()

    rng = numpy.random.default_rng(0)
    train, validation = rings(2000, rng), rings(1000, rng)
    options = {"objective": "binary:logistic", "eval_metric": "logloss", "eta": args.eta, "max_depth": args.max_depth,
               "booster": args.booster, "seed": 0}
    if args.booster == "dart":
        options["rate_drop"] = args.rate_drop
    xgboost.train(options, train, args.rounds, evals=[(train, "train"), (validation, "validation")])


if __name__ == "__main__":
    main()
