"""Parameters of a search space, as docs/search_spaces.md describes them. Each function returns a dict in NNI's format;
a space is a dict of them, such as {"lr": space.loguniform(1e-5, 1), "layers": space.choice(1, 2, 3)}."""
import typing

from espalier.errors import UsageError


def choice(*options: typing.Any) -> dict:
    """One of the options: numbers, strings, booleans, or dicts with a "_name" and parameters of their own."""
    if len(options) == 1 and isinstance(options[0], (list, tuple)):
        shown = ", ".join(map(repr, options[0][:3])) + (", ..." if len(options[0]) > 3 else "")
        raise UsageError(f"choice takes its options one by one: choice({shown}), or choice(*options)")
    return {"_type": "choice", "_value": list(options)}


def randint(low: int, high: int) -> dict:
    """An integer from low to high - 1."""
    return {"_type": "randint", "_value": [low, high]}


def uniform(low: float, high: float) -> dict:
    """A float from low to high."""
    return {"_type": "uniform", "_value": [low, high]}


def quniform(low: float, high: float, q: float) -> dict:
    """Uniform, rounded to the nearest multiple of q."""
    return {"_type": "quniform", "_value": [low, high, q]}


def loguniform(low: float, high: float) -> dict:
    """Uniform in the logarithm; low > 0."""
    return {"_type": "loguniform", "_value": [low, high]}


def qloguniform(low: float, high: float, q: float) -> dict:
    """Log-uniform, rounded to the nearest multiple of q."""
    return {"_type": "qloguniform", "_value": [low, high, q]}


def normal(mu: float, sigma: float) -> dict:
    """Normal with mean mu and standard deviation sigma; unbounded."""
    return {"_type": "normal", "_value": [mu, sigma]}


def qnormal(mu: float, sigma: float, q: float) -> dict:
    """Normal, rounded to the nearest multiple of q."""
    return {"_type": "qnormal", "_value": [mu, sigma, q]}


def lognormal(mu: float, sigma: float) -> dict:
    """Log-normal; mu and sigma are those of the logarithm."""
    return {"_type": "lognormal", "_value": [mu, sigma]}


def qlognormal(mu: float, sigma: float, q: float) -> dict:
    """Log-normal, rounded to the nearest multiple of q."""
    return {"_type": "qlognormal", "_value": [mu, sigma, q]}
