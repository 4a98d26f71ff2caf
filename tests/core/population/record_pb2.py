"""What a Gaussian process that varies with time comes to, by NumPy: what ours is held to.

    python3 tests/core/population/record_pb2.py     # writes pb2.txt, with NumPy

A line is a name and numbers; tables are written row by row. The kernel is Matern's of smoothness 5/2 times
(1 - forgetting)^(|t - u| / 2), the third axis without an order. `gradient` is that of the sum of both logarithms by the
logarithms of the inverse squared lengths, the scale, the noise and the forgetting, by central differences.
"""
import pathlib

import numpy as np

AXES = 3
UNORDERED = 2
SEEN, PENDING, ASKED = 14, 3, 5


def covariances(x, t, y, u, lengths, scale, forgetting):
    squared = np.zeros((len(x), len(y)))
    for axis in range(AXES):
        difference = x[:, None, axis] - y[None, :, axis]
        squared += lengths[axis] * ((difference != 0).astype(float) if axis == UNORDERED else difference ** 2)
    root = np.sqrt(5 * squared)
    return scale * (1 + root + 5 / 3 * squared) * np.exp(-root) * (1 - forgetting) ** (np.abs(t[:, None] - u[None]) / 2)


def logs_of(x, t, values, parameters):
    lengths, (scale, noise, forgetting) = parameters[:AXES], parameters[AXES:]
    k = covariances(x, t, x, t, lengths, scale, forgetting) + noise * np.eye(len(x))
    likelihood = -0.5 * np.linalg.slogdet(k)[1] - 0.5 * values @ np.linalg.solve(k, values)
    prior = -np.sum(0.1 / lengths + 0.1 * lengths) + np.log(scale) - scale + 0.5 * np.log(noise) - 5 * noise
    return likelihood, prior


def gradient(x, t, values, parameters, step=1e-5):
    slopes = []
    for i in range(len(parameters)):
        ends = []
        for sign in (1, -1):
            moved = parameters.copy()
            moved[i] *= np.exp(sign * step)
            likelihood, prior = logs_of(x, t, values, moved)
            # The priors of the fitted parameters are densities of theirs, not of their logarithms.
            ends.append(likelihood + prior)
        slopes.append((ends[0] - ends[1]) / (2 * step))
    return np.array(slopes)


def main():
    rng = np.random.default_rng(2020)

    def drawn(count):
        points = np.round(rng.uniform(size=(count, AXES)), 3)
        points[:, UNORDERED] = rng.integers(3, size=count)
        return points, rng.integers(9, size=count).astype(float)

    (x, t), (p, u), (a, b) = drawn(SEEN), drawn(PENDING), drawn(ASKED)
    values = np.round(rng.normal(size=SEEN), 3)
    parameters = np.array([2.5, 0.8, 0.4, 1.3, 0.07, 0.15])
    lengths, (scale, noise, forgetting) = parameters[:AXES], parameters[AXES:]
    likelihood, prior = logs_of(x, t, values, parameters)

    k = covariances(x, t, x, t, lengths, scale, forgetting) + noise * np.eye(SEEN)
    mean = covariances(a, b, x, t, lengths, scale, forgetting) @ np.linalg.solve(k, values)
    xp, tu = np.vstack([x, p]), np.concatenate([t, u])
    k = covariances(xp, tu, xp, tu, lengths, scale, forgetting) + noise * np.eye(SEEN + PENDING)
    to = covariances(a, b, xp, tu, lengths, scale, forgetting)
    variance = scale - np.sum(to * np.linalg.solve(k, to.T).T, axis=1)
    lines = [f"# NumPy {np.__version__}: record_pb2.py"]
    for name, numbers in {"seen": x, "seen.times": t, "seen.values": values, "pending": p, "pending.times": u, "asked": a,
                          "asked.times": b, "parameters": parameters, "mean": mean, "variance": variance,
                          "likelihood": [likelihood], "prior": [prior],
                          "gradient": gradient(x, t, values, parameters)}.items():
        lines.append(f"{name} " + " ".join(f"{number:.12g}" for number in np.asarray(numbers, dtype=float).reshape(-1)))
    (pathlib.Path(__file__).parent / "pb2.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
