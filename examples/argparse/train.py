#!/usr/bin/env python3
"""A training script as there are many: it has never heard of a tuner.

Logistic regression on two noisy moons by stochastic gradient descent, in plain Python.
"""
import argparse
import math
import random


def moons(count, noise, rng):
    """Points of two half circles that reach into one another, and which of the two they are of."""
    points = []
    for i in range(count):
        angle, label = math.pi * rng.random(), i % 2
        x, y = (1 - math.cos(angle), 0.5 - math.sin(angle)) if label else (math.cos(angle), math.sin(angle))
        points.append((x + rng.gauss(0, noise), y + rng.gauss(0, noise), label))
    return points


def features(x, y, degree):
    return [x**i * y**j for i in range(degree + 1) for j in range(degree + 1 - i)]


def log_loss(weights, data):
    total = 0.0
    for inputs, label in data:
        z = sum(w * f for w, f in zip(weights, inputs))
        total += max(z, 0) - z * label + math.log1p(math.exp(-abs(z)))
    return total / len(data)


def train_epoch(weights, velocity, data, args):
    for inputs, label in data:
        z = max(-500.0, min(500.0, sum(w * f for w, f in zip(weights, inputs))))
        error = 1 / (1 + math.exp(-z)) - label
        for i, f in enumerate(inputs):
            gradient = error * f + args.weight_decay * weights[i]
            velocity[i] = args.momentum * velocity[i] - args.lr * gradient
            weights[i] += args.momentum * velocity[i] - args.lr * gradient if args.nesterov else velocity[i]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--nesterov", action="store_true")
    parser.add_argument("--degree", type=int, default=3, help="of the polynomial in x and y")
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    train, test = ([(features(x, y, args.degree), label) for x, y, label in moons(count, 0.25, rng)]
                   for count in (200, 200))
    weights = [0.0] * len(train[0][0])
    velocity = [0.0] * len(weights)
    for epoch in range(1, args.epochs + 1):
        rng.shuffle(train)
        train_epoch(weights, velocity, train, args)
        print(f"epoch {epoch}/{args.epochs}: loss={log_loss(weights, train):.5f} val_loss={log_loss(weights, test):.5f}")


if __name__ == "__main__":
    main()
