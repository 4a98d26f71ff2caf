"""poolbench: an analytic tuning workload. Learning curves, batch-size efficiency and scaling curves that fit together,
deterministic and portable: every random number comes from splitmix64, so another language gives the same figures.

A configuration is (log10_lr, log2_bs, wd, width). On k slots it trains E epochs of N samples:
  final error   least at an optimum learning rate that grows with the batch size by a rule (square root or linear);
                a learning rate far above it diverges
  curve         f + (e0 - f) * (1 + e*eff/tau)^-a * exp(-e*eff/60) + noise,  eff = (phi + 128) / (phi + b)
                (statistical efficiency relative to batch 128, gradient noise scale phi by width)
  seconds       N/b iterations an epoch of T_iter = (T_grad^g + T_sync^g)^(1/g), the overlap form of Pollux (OSDI'21)

The original of tuner/simulator/poolbench.cc, trimmed to what the test needs.
usage: poolbench.py > poolbench.golden
"""
import math

MASK = (1 << 64) - 1
NOISE_SCALE = (1500, 2500, 4000, 6000, 9000)      # phi, in samples, by width index
GRAD_COST = (0.9, 1.2, 2.0, 4.0, 9.0)             # relative cost of a sample, by width index


class SplitMix64:
    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        x = self.state
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        return x ^ (x >> 31)

    def uniform(self):                             # [0, 1), 53 bits
        return (self.next() >> 11) * 2.0 ** -53

    def normal(self):                              # Box-Muller, cosine branch only
        u, v = 1.0 - self.uniform(), self.uniform()
        return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


class Pool:
    E, N, E0, NOISE = 81, 50000, 0.9, 0.002

    def __init__(self, seed=0, rule="sqrt"):
        self.rng = SplitMix64(seed)
        self.rule = {"sqrt": 0.5, "linear": 1.0}[rule]

    def sample(self):
        """One configuration, drawn in this order."""
        log10_lr = -5.0 + 5.0 * self.rng.uniform()
        log2_bs = 4 + int(9 * self.rng.uniform())
        wd = -6.0 + 5.0 * self.rng.uniform()
        return dict(log10_lr=log10_lr, log2_bs=log2_bs, wd=wd, width=int(5 * self.rng.uniform()))

    def best_log10_lr(self, c):
        return -2.6 + self.rule * math.log10(2.0 ** c["log2_bs"] / 128)

    def final_error(self, c):
        z = c["log10_lr"] - (self.best_log10_lr(c) - 0.15 * (c["width"] - 2))
        f = (0.060 + 0.03 * max(-z, 0.0) ** 1.5 + 0.09 * max(z, 0.0) ** 2 + 0.004 * (c["wd"] + 3.5) ** 2
             + 0.006 * (4 - c["width"]) + 0.0025 * max(c["log2_bs"] - 9, 0) ** 2)
        return min(f, 0.9)

    def iteration_s(self, c, k):
        """Seconds of one iteration of the configuration's global batch on k slots."""
        grad = 0.004 + 2.0 ** c["log2_bs"] / k * GRAD_COST[c["width"]] * 4e-5
        sync = 0.0 if k == 1 else 0.004 + 0.0007 * (k - 2) + (0.006 if k > 4 else 0.0)
        return (grad ** 1.8 + sync ** 1.8) ** (1 / 1.8)

    def epoch_s(self, c, k):
        return self.N / 2.0 ** c["log2_bs"] * self.iteration_s(c, k)

    def errors(self, c):
        """Validation error after epochs 1..E."""
        b, phi = 2.0 ** c["log2_bs"], NOISE_SCALE[c["width"]]
        eff, f = (phi + 128) / (phi + b), self.final_error(c)
        tau = 2.0 * (1 + abs(min(c["log10_lr"] + 2.6, 0.0)))
        diverged = c["log10_lr"] - self.best_log10_lr(c) > 1.3
        key = (round((c["log10_lr"] + 16) * 1e9) * 1000003 + c["log2_bs"] * 10007 + c["width"]) & MASK
        noise, out = SplitMix64(key), []
        for e in range(1, self.E + 1):
            x = 0.9 if diverged else f + (self.E0 - f) * (1 + e * eff / tau) ** -1.1 * math.exp(-e * eff / 60)
            out.append(min(max(x + self.NOISE * noise.normal(), 0.01), 0.95))
        return out


def main():
    print("# rule seed index log10_lr log2_bs wd width final_error, seconds of an epoch on 1 2 4 5 8 16 slots, errors")
    for rule in ("sqrt", "linear"):
        for seed in (0, 1, 12345):
            pool = Pool(seed, rule)
            for index in range(40):
                c = pool.sample()
                if index % 3:
                    continue
                figures = [c["log10_lr"], c["log2_bs"], c["wd"], c["width"], pool.final_error(c)]
                figures += [pool.epoch_s(c, k) for k in (1, 2, 4, 5, 8, 16)]
                figures += [e for i, e in enumerate(pool.errors(c)) if i % 20 == 0]
                print(rule, seed, index, *(format(f, ".15g") for f in figures))


if __name__ == "__main__":
    main()
