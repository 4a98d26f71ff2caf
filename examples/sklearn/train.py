#!/usr/bin/env python3
"""A script with scikit-learn that has never heard of a tuner: a network of one layer reads handwritten digits."""
import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--alpha", type=float, default=1e-4, help="strength of the L2 penalty")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=20)
    args = parser.parse_args()

    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    network = MLPClassifier((args.hidden,), alpha=args.alpha, learning_rate_init=args.lr, max_iter=args.iterations,
                            n_iter_no_change=args.iterations, random_state=0, verbose=True)
    model = make_pipeline(StandardScaler(), network)
    model.fit(x_train, y_train)
    print(f"accuracy={model.score(x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
