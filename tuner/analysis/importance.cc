#include "tuner/analysis/importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "search_spaces/gaussian.h"

namespace espalier {

namespace {

constexpr double kBestShare = 0.1;
constexpr int kGridSize = 50;
constexpr double kPriorWeight = 1;
constexpr std::size_t kMinTrialsInRegime = 2;
constexpr double kMinDensity = 1e-12;
constexpr double kMinSigma = 0.5 / 1.64;  // a grid step holds nine tenths of such a kernel

using Counts = std::vector<double>;  // trials by grid point

// ---- One parameter on a grid -----------------------------------------------------------------

int GridSize(const OptunaDistribution& d) {
  if (d.type == OptunaDistribution::Type::kCategorical) return static_cast<int>(d.choices.size());
  int size = kGridSize;
  if (d.type == OptunaDistribution::Type::kInt && d.log) {
    size = static_cast<int>(std::ceil(std::log(d.high - d.low + 1) / std::log(2))) + 1;
  } else if (d.type == OptunaDistribution::Type::kInt || d.step) {
    const double points = std::nearbyint((d.high - d.low) / d.step.value_or(1)) + 1;
    size = points < kGridSize ? static_cast<int>(points) : kGridSize;
  }
  return std::min(size, kGridSize);
}

Counts OnGrid(const OptunaDistribution& d, const std::vector<double>& stored) {
  const int size = GridSize(d);
  Counts counts(static_cast<std::size_t>(size), 0);
  const bool choice = d.type == OptunaDistribution::Type::kCategorical;
  const double low = d.log ? std::log(d.low) : d.low;
  const double high = d.log ? std::log(d.high) : d.high;
  const double step = (high - low) / (size - 1);
  for (const double value : stored) {
    // The lower of two points that are equally near.
    const double at =
        choice ? value : std::ceil(((d.log ? std::log(value) : value) - low) / step - 0.5);
    if (std::isnan(at)) continue;
    ++counts[static_cast<std::size_t>(std::clamp(at, 0.0, size - 1.0))];
  }
  return counts;
}

// Width of the kernels by Scott's rule, from the weighted spread and the quartiles.
double KernelSigma(const std::vector<double>& points, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double mean = std::inner_product(points.begin(), points.end(), weights.begin(), 0.0) / sum;
  double squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    squares += weights[i] * (points[i] - mean) * (points[i] - mean);
  }
  const double spread = std::sqrt(squares / std::max(1.0, sum - 1));
  std::vector<double> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  const auto first = std::lower_bound(cumulative.begin(), cumulative.end(), std::floor(sum / 4));
  const auto third =
      std::upper_bound(cumulative.begin(), cumulative.end(), std::floor(sum * 3 / 4));
  const auto last = std::ssize(points) - 1;
  const auto point = [&](auto it) {
    return points[static_cast<std::size_t>(std::min(it - cumulative.begin(), last))];
  };
  const double quartiles = point(third) - point(first);
  return std::max(kMinSigma, 1.059 * std::min(quartiles / 1.34, spread) * std::pow(sum, -0.2));
}

std::vector<double> NumberDensity(const Counts& counts) {
  std::vector<double> points;
  std::vector<double> weights;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    points.push_back(static_cast<double>(i));
    weights.push_back(counts[i]);
  }
  const double high = static_cast<double>(counts.size()) - 1;
  std::vector<double> sigmas(points.size(), KernelSigma(points, weights));
  points.push_back(high / 2);  // the prior
  sigmas.push_back(high + 1);
  weights.push_back(kPriorWeight);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> density(counts.size(), kMinDensity);
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto mass = [&](double from, double to) {
      return NormalMass((from - points[k]) / sigmas[k], (to - points[k]) / sigmas[k]);
    };
    const double scale = weights[k] / sum / mass(-0.5, high + 0.5);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto x = static_cast<double>(i);
      density[i] += scale * mass(x - 0.5, x + 0.5);
    }
  }
  return density;
}

std::vector<double> ChoiceDensity(const Counts& counts) {
  const auto n = static_cast<double>(counts.size());
  const auto kernels = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](double count) { return count > 0; }) + 1);
  const double sum = std::accumulate(counts.begin(), counts.end(), kPriorWeight);
  const double other = kPriorWeight / kernels;  // before a kernel's row is made to sum to 1
  const double row = n * other + 1;
  std::vector<double> density(counts.size(), kMinDensity + kPriorWeight / sum / n);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    for (std::size_t k = 0; k < counts.size(); ++k) {
      density[i] += counts[k] / sum * (other + (i == k ? 1 : 0)) / row;
    }
  }
  return density;
}

std::vector<double> Density(const OptunaDistribution& d, const std::vector<double>& stored) {
  const Counts counts = OnGrid(d, stored);
  return d.type == OptunaDistribution::Type::kCategorical ? ChoiceDensity(counts)
                                                          : NumberDensity(counts);
}

double PearsonDivergence(const OptunaDistribution& d, const std::vector<double>& best,
                         const std::vector<double>& all) {
  const std::vector<double> of_best = Density(d, best);
  const std::vector<double> of_all = Density(d, all);
  double divergence = 0;
  for (std::size_t i = 0; i < of_all.size(); ++i) {
    const double ratio = of_best[i] / of_all[i] - 1;
    divergence += of_all[i] * ratio * ratio;
  }
  return divergence;
}

bool IsSingle(const OptunaDistribution& d) {
  if (d.type == OptunaDistribution::Type::kCategorical) return d.choices.size() <= 1;
  if (d.low == d.high) return true;
  if (d.log) return false;
  const double step = d.step.value_or(d.type == OptunaDistribution::Type::kInt ? 1 : 0);
  return d.high - d.low < step;
}

// ---- All of them -----------------------------------------------------------------------------

struct Observed {
  double loss = 0;  // less is better
  bool best = false;
  std::vector<DrawnParameter> parameters;
};

// Complete trials whose objective is a finite number, and which are the best of them.
std::vector<Observed> Observe(const StudyCopy& study, DrawnParameters& parameters,
                              std::size_t objective) {
  const bool maximize = study.head.spec.directions[objective] == Direction::kMaximize;
  std::vector<Observed> observed;
  for (const TrialCopy& trial : study.trials) {
    if (trial.state != TrialState::kComplete || trial.values.size() <= objective) continue;
    const double value = trial.values[objective];
    if (!std::isfinite(value)) continue;
    observed.push_back({maximize ? -value : value, false, parameters.Of(trial)});
  }
  if (observed.empty()) return observed;
  std::vector<double> losses;
  for (const Observed& one : observed) losses.push_back(one.loss);
  const auto cut =
      losses.begin() +
      (static_cast<std::ptrdiff_t>(std::ceil(kBestShare * static_cast<double>(losses.size()))) - 1);
  std::nth_element(losses.begin(), cut, losses.end());
  for (Observed& one : observed) one.best = one.loss <= *cut;
  return observed;
}

struct Regime {
  std::vector<double> best;
  std::vector<double> all;
};

}  // namespace

std::vector<Importance> Importances(const StudyCopy& study, DrawnParameters& parameters,
                                    std::size_t objective) {
  const auto complete =
      std::count_if(study.trials.begin(), study.trials.end(),
                    [](const TrialCopy& trial) { return trial.state == TrialState::kComplete; });
  if (complete <= 1) return {};

  std::vector<Importance> importances;
  std::map<std::string, std::size_t> place;
  for (const TrialCopy& trial : study.trials) {
    if (trial.state != TrialState::kComplete) continue;
    for (const DrawnParameter& parameter : parameters.Of(trial)) {
      const DrawnParameters::Entry& entry = parameters.entry(parameter.distribution);
      if (place.emplace(entry.name, importances.size()).second) {
        importances.push_back({entry.name, 0, entry.distribution.name});
      }
    }
  }

  const std::vector<Observed> observed = Observe(study, parameters, objective);
  std::map<int, Regime> regimes;  // by distribution: a name may have several
  double best = 0;
  for (const Observed& one : observed) {
    best += one.best ? 1 : 0;
    for (const DrawnParameter& parameter : one.parameters) {
      Regime& regime = regimes[parameter.distribution];
      regime.all.push_back(parameter.stored);
      if (one.best) regime.best.push_back(parameter.stored);
    }
  }
  if (observed.size() > 1) {
    for (const auto& [index, regime] : regimes) {
      const DrawnParameters::Entry& entry = parameters.entry(index);
      if (regime.all.size() < kMinTrialsInRegime || regime.best.empty()) continue;
      if (IsSingle(entry.distribution)) continue;
      const double of_best = static_cast<double>(regime.best.size()) / best;
      const double of_all =
          static_cast<double>(regime.all.size()) / static_cast<double>(observed.size());
      importances[place.at(entry.name)].importance +=
          of_best * of_best / of_all *
          PearsonDivergence(entry.distribution, regime.best, regime.all);
    }
  }
  double sum = 0;
  for (const Importance& one : importances) sum += one.importance;
  for (Importance& one : importances) {
    one.importance = sum > 0 ? one.importance / sum : 1 / static_cast<double>(importances.size());
  }
  std::stable_sort(
      importances.begin(), importances.end(),
      [](const Importance& a, const Importance& b) { return a.importance > b.importance; });
  return importances;
}

}  // namespace espalier
