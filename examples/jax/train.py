#!/usr/bin/env python3
"""A script with JAX that has never heard of a tuner: a network of two layers learns a chessboard. It logs to stderr."""
import argparse
import logging

import jax
import jax.numpy as jnp


def chessboard(key, count):
    points = jax.random.uniform(key, (count, 2), minval=-1, maxval=1)
    return points, (jnp.floor(points).sum(axis=1) % 2 == 0).astype(jnp.float32)


def initial(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (n, m)) * jnp.sqrt(2 / n), jnp.zeros(m)) for k, n, m in zip(keys, sizes, sizes[1:])]


def logits(layers, x):
    for weights, bias in layers[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = layers[-1]
    return (x @ weights + bias)[:, 0]


def loss(layers, x, y):
    z = logits(layers, x)
    return jnp.mean(jnp.logaddexp(0, z) - z * y)


@jax.jit
def step(layers, velocity, x, y, lr, momentum):
    gradient = jax.grad(loss)(layers, x, y)
    velocity = jax.tree.map(lambda v, g: momentum * v - lr * g, velocity, gradient)
    return jax.tree.map(jnp.add, layers, velocity), velocity


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(filename)s:%(lineno)d] %(message)s")

    keys = jax.random.split(jax.random.key(0), 3)
    (x, y), (x_test, y_test) = chessboard(keys[0], 2048), chessboard(keys[1], 1024)
    layers = initial(keys[2], [2, args.width, args.width, 1])
    velocity = jax.tree.map(jnp.zeros_like, layers)
    for epoch in range(1, args.epochs + 1):
        for batch in range(0, len(x), 128):
            layers, velocity = step(layers, velocity, x[batch:batch + 128], y[batch:batch + 128], args.lr, args.momentum)
        accuracy = jnp.mean((logits(layers, x_test) > 0) == (y_test > 0.5))
        logging.info("epoch: %d, loss: %.4f, accuracy: %.4f", epoch, loss(layers, x_test, y_test), accuracy)


if __name__ == "__main__":
    main()
