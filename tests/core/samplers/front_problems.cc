#include "tests/core/samplers/front_problems.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::testing {
namespace {

using Numbers = std::vector<double>;

constexpr double kPi = std::numbers::pi;
constexpr std::size_t kObjectives = 3;  // of DTLZ

// ---- ZDT: f2 = g h(f1, g) -----------------------------------------------------------------------

double MeanOfRest(const Numbers& x) {
  double sum = 0;
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
  return sum / static_cast<double>(x.size() - 1);
}

Numbers Zdt1(const Numbers& x) {
  const double g = 1 + 9 * MeanOfRest(x);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}

Numbers Zdt2(const Numbers& x) {
  const double g = 1 + 9 * MeanOfRest(x);
  return {x[0], g * (1 - x[0] / g * (x[0] / g))};
}

Numbers Zdt3(const Numbers& x) {
  const double g = 1 + 9 * MeanOfRest(x);
  return {x[0], g * (1 - std::sqrt(x[0] / g) - x[0] / g * std::sin(10 * kPi * x[0]))};
}

Numbers Zdt4(const Numbers& x) {
  double g = 1 + 10 * static_cast<double>(x.size() - 1);
  for (std::size_t i = 1; i < x.size(); ++i) g += x[i] * x[i] - 10 * std::cos(4 * kPi * x[i]);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}

Numbers Zdt6(const Numbers& x) {
  const double f = 1 - std::exp(-4 * x[0]) * std::pow(std::sin(6 * kPi * x[0]), 6);
  const double g = 1 + 9 * std::pow(MeanOfRest(x), 0.25);
  return {f, g * (1 - f / g * (f / g))};
}

// ---- DTLZ: the first numbers are the place on the front, the rest the distance from it
// -----------

double Bowl(const Numbers& x) {
  double sum = 0;
  for (std::size_t i = kObjectives - 1; i < x.size(); ++i) sum += (x[i] - 0.5) * (x[i] - 0.5);
  return sum;
}

double ManyHills(const Numbers& x) {
  double sum = static_cast<double>(x.size() - kObjectives + 1) + Bowl(x);
  for (std::size_t i = kObjectives - 1; i < x.size(); ++i) {
    sum -= std::cos(20 * kPi * (x[i] - 0.5));
  }
  return 100 * sum;
}

Numbers Dtlz1(const Numbers& x) {
  Numbers values;
  for (std::size_t k = 0; k < kObjectives; ++k) {
    const std::size_t last = kObjectives - 1 - k;
    double value = 0.5 * (1 + ManyHills(x));
    for (std::size_t i = 0; i < last; ++i) value *= x[i];
    values.push_back(k == 0 ? value : value * (1 - x[last]));
  }
  return values;
}

Numbers OnSphere(const Numbers& x, double g, double power) {
  Numbers values;
  for (std::size_t k = 0; k < kObjectives; ++k) {
    const std::size_t last = kObjectives - 1 - k;
    const auto angle = [&](std::size_t i) { return std::pow(x[i], power) * kPi / 2; };
    double value = 1 + g;
    for (std::size_t i = 0; i < last; ++i) value *= std::cos(angle(i));
    values.push_back(k == 0 ? value : value * std::sin(angle(last)));
  }
  return values;
}

Numbers Dtlz2(const Numbers& x) { return OnSphere(x, Bowl(x), 1); }
Numbers Dtlz3(const Numbers& x) { return OnSphere(x, ManyHills(x), 1); }
Numbers Dtlz4(const Numbers& x) { return OnSphere(x, Bowl(x), 100); }

Numbers Dtlz7(const Numbers& x) {
  double g = 0;
  for (std::size_t i = kObjectives - 1; i < x.size(); ++i) g += x[i];
  g = 1 + 9 * g / static_cast<double>(x.size() - kObjectives + 1);
  Numbers values(x.begin(), x.begin() + kObjectives - 1);
  double height = kObjectives;
  for (const double f : values) height -= f / (1 + g) * (1 + std::sin(3 * kPi * f));
  values.push_back((1 + g) * height);
  return values;
}

FrontProblem Unit(const char* name, std::size_t numbers, Numbers (*values)(const Numbers&),
                  Numbers reference, double rest_on_front) {
  return {.name = name,
          .low = Numbers(numbers, 0),
          .high = Numbers(numbers, 1),
          .values = values,
          .reference = std::move(reference),
          .rest_on_front = rest_on_front};
}

FrontProblem Zdt4Problem() {
  FrontProblem problem = Unit("zdt4", 10, Zdt4, {1.1, 150}, 0);
  std::fill(problem.low.begin() + 1, problem.low.end(), -5);
  std::fill(problem.high.begin() + 1, problem.high.end(), 5);
  return problem;
}

}  // namespace

SearchSpace FrontProblem::Space() const {
  std::vector<SearchSpace::Dimension> dimensions;
  for (std::size_t i = 0; i < low.size(); ++i) {
    dimensions.push_back({.name = absl::StrCat("x", i), .distribution = Uniform{low[i], high[i]}});
  }
  return *SearchSpace::Make(std::move(dimensions));
}

double FrontProblem::VolumeOf(const Losses& losses) const {
  Losses within(reference.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (std::equal(losses[i].begin(), losses[i].end(), reference.begin(), std::less_equal<>())) {
      within.Add(losses[i]);
    }
  }
  return Hypervolume(within, reference);
}

const std::vector<FrontProblem>& FrontProblems() {
  static const std::vector<FrontProblem> problems = {
      Unit("zdt1", 30, Zdt1, {1.1, 6.5}, 0),
      Unit("zdt2", 30, Zdt2, {1.1, 6.5}, 0),
      Unit("zdt3", 30, Zdt3, {1.1, 6.5}, 0),
      Zdt4Problem(),
      Unit("zdt6", 10, Zdt6, {1.1, 10}, 0),
      Unit("dtlz1", 7, Dtlz1, {400, 400, 400}, 0.5),
      Unit("dtlz2", 12, Dtlz2, {2.5, 2.5, 2.5}, 0.5),
      Unit("dtlz3", 12, Dtlz3, {1500, 1500, 1500}, 0.5),
      Unit("dtlz4", 12, Dtlz4, {2.5, 2.5, 2.5}, 0.5),
      Unit("dtlz7", 22, Dtlz7, {1.1, 1.1, 25}, 0)};
  return problems;
}

const FrontProblem& FrontProblemNamed(const std::string& name) {
  for (const FrontProblem& problem : FrontProblems()) {
    if (problem.name == name) return problem;
  }
  ESPALIER_CHECK(false, "no such problem: " + name);
}

double VolumeReached(const std::string& sampler_name, const Options& options,
                     const FrontProblem& problem, int trials, std::uint64_t seed) {
  const SearchSpace space = problem.Space();
  const std::unique_ptr<Sampler> sampler = *MakeSampler(sampler_name, options);
  const std::vector<Direction> others(problem.reference.size() - 1, Direction::kMinimize);
  std::deque<Parameters> tried;  // deques: the observations point into them
  std::deque<Numbers> reached;
  std::vector<Observation> ended;
  Losses losses(problem.reference.size());
  for (std::int64_t number = 0; number < trials; ++number) {
    Random random(MixSeed(seed, static_cast<std::uint64_t>(number)));
    const SamplerInput input{.space = space,
                             .direction = Direction::kMinimize,
                             .ended = ended,
                             .running = {},
                             .trial_number = number,
                             .other_directions = others};
    tried.push_back(*sampler->Suggest(input, random));
    Numbers x;
    for (const Parameter& parameter : tried.back()) x.push_back(std::get<double>(parameter.value));
    reached.push_back(problem.values(x));
    losses.Add(reached.back());
    ended.push_back({.trial_number = number,
                     .parameters = &tried.back(),
                     .value = reached.back().front(),
                     .other_values = std::span(reached.back()).subspan(1),
                     .at = Time{number}});
  }
  return problem.VolumeOf(losses);
}

}  // namespace espalier::testing
