#include "tuner/core/samplers/crossovers.h"

#include <algorithm>
#include <cmath>

#include "search_spaces/gaussian.h"
#include "search_spaces/portable_math.h"

namespace espalier::samplers {
namespace {

using Numbers = std::vector<double>;

// The same on every machine. Requires base >= 0.
double Power(double base, double exponent) {
  if (base <= 0) return exponent == 0 ? 1 : 0;
  return PortableExp(exponent * PortableLog(base));
}

double DrawNormal(Random& random) { return NormalQuantile(std::max(random.Uniform(), 0x1.0p-53)); }

Numbers CrossUniformly(double swapping_probability, const Numbers& a, const Numbers& b,
                       Random& random) {
  Numbers child;
  for (std::size_t i = 0; i < a.size(); ++i) {
    child.push_back(random.Uniform() >= swapping_probability ? b[i] : a[i]);
  }
  return child;
}

Numbers CrossBlx(double alpha, const Numbers& a, const Numbers& b, Random& random) {
  Numbers child;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double beyond = alpha * std::abs(a[i] - b[i]);
    child.push_back(random.Uniform(std::min(a[i], b[i]) - beyond, std::max(a[i], b[i]) + beyond));
  }
  return child;
}

// Equations (1) to (5) of Tsutsui et al.: evenly within the parents' simplex, made greater around
// their mean.
Numbers CrossSpx(const std::optional<double>& epsilon, const std::vector<Numbers>& parents,
                 Random& random) {
  const std::size_t n = parents.front().size();
  const double greater = epsilon.value_or(std::sqrt(static_cast<double>(n) + 2));
  const double shares[] = {random.Uniform(), std::sqrt(random.Uniform())};
  Numbers child;
  for (std::size_t i = 0; i < n; ++i) {
    const double mean = (parents[0][i] + parents[1][i] + parents[2][i]) / 3;
    const auto corner = [&](std::size_t k) { return mean + greater * (parents[k][i] - mean); };
    double offset = 0;
    for (std::size_t k = 1; k < 3; ++k) {
      offset = shares[k - 1] * (corner(k - 1) - corner(k) + offset);
    }
    child.push_back(corner(2) + offset);
  }
  return child;
}

// Makes one child of the two that SBX and VSBX make, as Optuna does: each number is crossed or a
// parent's, and may be exchanged between the two.
class OneOfTwo {
 public:
  OneOfTwo(const CrossoverSpread& spread, Random& random)
      : spread_(spread), random_(random), second_(random.Uniform() >= 0.5) {}

  double Gene(double child, double other_child, double parent, double other_parent) {
    const bool crossed = random_.Uniform() < spread_.child_gene_probability;
    const bool exchanged = random_.Uniform() < spread_.uniform_crossover_probability;
    if (exchanged == second_) return crossed ? child : parent;
    return crossed ? other_child : other_parent;
  }

 private:
  const CrossoverSpread& spread_;
  Random& random_;
  const bool second_;
};

// How far a child is from the middle of its parents, in half their distance; `room` is what is
// between the parent and the bound on its side, likewise.
double SpreadWithin(double room, double eta, double u) {
  const double alpha = 2 - Power(1 + room, -(eta + 1));
  if (u <= 1 / alpha) return Power(u * alpha, 1 / (eta + 1));
  return Power(1 / (2 - u * alpha), 1 / (eta + 1));
}

Numbers CrossSbx(double eta, const CrossoverSpread& spread, const Numbers& a, const Numbers& b,
                 Random& random) {
  OneOfTwo one(spread, random);
  Numbers child;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto [low, high] = std::minmax(a[i], b[i]);
    const double apart = std::max(high - low, 1e-10);
    const double u = random.Uniform();
    const double below = SpreadWithin(2 * low / apart, eta, u);
    const double above = SpreadWithin(2 * (1 - high) / apart, eta, u);
    child.push_back(one.Gene(0.5 * (low + high - below * apart), 0.5 * (low + high + above * apart),
                             a[i], b[i]));
  }
  return child;
}

Numbers CrossVsbx(double eta, const CrossoverSpread& spread, const Numbers& a, const Numbers& b,
                  Random& random) {
  constexpr double kLeast = 1e-10;  // of what is divided by
  const bool first_near = random.Uniform() <= 0.5;
  const bool second_near = random.Uniform() <= 0.5;
  OneOfTwo one(spread, random);
  Numbers child;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double u = random.Uniform();
    const double p = Power(1 / std::max(2 * u, kLeast), 1 / (eta + 1));
    const double q = Power(1 / std::max(2 * (1 - u), kLeast), 1 / (eta + 1));
    const double first = first_near ? 0.5 * ((1 + p) * a[i] + (1 - q) * b[i])
                                    : 0.5 * ((1 - p) * a[i] + (1 + q) * b[i]);
    const double second = second_near ? 0.5 * ((3 - p) * a[i] - (1 - q) * b[i])
                                      : 0.5 * (-(1 - p) * a[i] + (3 - q) * b[i]);
    child.push_back(one.Gene(first, second, a[i], b[i]));
  }
  return child;
}

double Dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Normal along the line through the first two parents, and across it as far as the third one is
// from it. The deviations are Optuna's, squares of those in the paper.
Numbers CrossUndx(const CrossoverSpread& spread, const std::vector<Numbers>& parents,
                  Random& random) {
  const std::size_t n = parents.front().size();
  const double along = spread.sigma_xi * spread.sigma_xi * DrawNormal(random);
  const double across_sigma =
      spread.sigma_eta ? *spread.sigma_eta * *spread.sigma_eta : 0.1225 / static_cast<double>(n);
  Numbers line(n), to_third(n), across(n);
  for (std::size_t i = 0; i < n; ++i) {
    line[i] = parents[1][i] - parents[0][i];
    to_third[i] = parents[2][i] - parents[0][i];
    across[i] = across_sigma * DrawNormal(random);
  }
  const double length = std::max(std::sqrt(Dot(line, line)), 1e-10);
  Numbers unit = line;
  for (double& x : unit) x /= length;
  const double third_along = Dot(to_third, unit);
  const double across_along = Dot(across, unit);
  for (std::size_t i = 0; i < n; ++i) {
    to_third[i] -= third_along * unit[i];
    across[i] -= across_along * unit[i];
  }
  const double distance = std::sqrt(Dot(to_third, to_third));
  Numbers child;
  for (std::size_t i = 0; i < n; ++i) {
    const double middle = 0.5 * (parents[0][i] + parents[1][i]);
    child.push_back(middle - along * line[i] + distance * across[i]);
  }
  return child;
}

}  // namespace

std::size_t ParentCount(Crossover crossover) {
  return crossover == Crossover::kSpx || crossover == Crossover::kUndx ? 3 : 2;
}

std::vector<double> Cross(const CrossoverInput& input,
                          const std::vector<std::vector<double>>& parents, Random& random) {
  const CrossoverSpread& spread = input.spread;
  const double eta = spread.eta.value_or(input.several_objectives ? 20 : 2);
  const Numbers& a = parents[0];
  const Numbers& b = parents[1];
  switch (input.crossover) {
    case Crossover::kUniform:
      return CrossUniformly(input.swapping_probability, a, b, random);
    case Crossover::kBlxAlpha:
      return CrossBlx(spread.alpha, a, b, random);
    case Crossover::kSpx:
      return CrossSpx(spread.epsilon, parents, random);
    case Crossover::kSbx:
      return CrossSbx(eta, spread, a, b, random);
    case Crossover::kVsbx:
      return CrossVsbx(eta, spread, a, b, random);
    case Crossover::kUndx:
      return CrossUndx(spread, parents, random);
  }
  return a;
}

double MutatePolynomially(double x, double eta, Random& random) {
  const double u = random.Uniform();
  const double to_bound = u <= 0.5 ? x : 1 - x;
  const double share = u <= 0.5 ? 2 * u : 2 * (1 - u);
  const double moved = 1 - Power(share + (1 - share) * Power(1 - to_bound, eta + 1), 1 / (eta + 1));
  return std::clamp(u <= 0.5 ? x - moved : x + moved, 0.0, 1.0);
}

}  // namespace espalier::samplers
