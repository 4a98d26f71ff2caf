"""What the benchmark samplers compares studies by."""
import collections
import math
import statistics


def ranks(values):
    """From 1, ascending; equal values share the middle of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranked = [0.0] * len(values)
    begin = 0
    while begin < len(order):
        end = begin
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            ranked[i] = (begin + 1 + end) / 2
        begin = end
    return ranked


def p_of_larger(ours, theirs):
    """One-sided p of Mann and Whitney's test that ours are larger: its normal approximation, with corrections for ties
    and for continuity."""
    n, m = len(ours), len(theirs)
    pooled = [*ours, *theirs]
    u = sum(ranks(pooled)[:n]) - n * (n + 1) / 2
    ties = sum(count**3 - count for count in collections.Counter(pooled).values())
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    return math.erfc((u - n * m / 2 - 0.5) / math.sqrt(2 * variance)) / 2


def rejected(p_values, level=0.05):
    """Which of them Holm's procedure rejects."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    out = [False] * len(p_values)
    for place, i in enumerate(order):
        if p_values[i] >= level / (len(order) - place):
            break
        out[i] = True
    return out


def levels(regrets, nothing):
    """To six digits, so that the same point of two libraries is the same, and none below `nothing`."""
    return [float(f"{max(regret, nothing):.6g}") for regret in regrets]
