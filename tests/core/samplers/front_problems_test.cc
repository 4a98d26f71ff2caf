#include "tests/core/samplers/front_problems.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "tests/core/samplers/optuna/recorded.h"

namespace espalier::testing {
namespace {

std::vector<double> PointOnFront(const FrontProblem& problem, Random& random) {
  std::vector<double> x(problem.low.size(), problem.rest_on_front);
  for (std::size_t i = 0; i + 1 < problem.reference.size(); ++i) x[i] = random.Uniform();
  return x;
}

TEST(FrontProblems, HaveTheFrontsThatAreKnown) {
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    const auto on_front = [&](const char* name) {
      const FrontProblem& problem = FrontProblemNamed(name);
      return problem.values(PointOnFront(problem, random));
    };
    for (const char* name : {"zdt1", "zdt4"}) {
      const std::vector<double> f = on_front(name);
      EXPECT_NEAR(f[1], 1 - std::sqrt(f[0]), 1e-12) << name;
    }
    for (const char* name : {"zdt2", "zdt6"}) {
      const std::vector<double> f = on_front(name);
      EXPECT_NEAR(f[1], 1 - f[0] * f[0], 1e-12) << name;
    }
    const std::vector<double> waves = on_front("zdt3");
    EXPECT_NEAR(waves[1],
                1 - std::sqrt(waves[0]) - waves[0] * std::sin(10 * std::acos(-1) * waves[0]),
                1e-12);
    const std::vector<double> plane = on_front("dtlz1");
    EXPECT_NEAR(std::accumulate(plane.begin(), plane.end(), 0.0), 0.5, 1e-12);
    for (const char* name : {"dtlz2", "dtlz3", "dtlz4"}) {
      const std::vector<double> f = on_front(name);
      EXPECT_NEAR(std::inner_product(f.begin(), f.end(), f.begin(), 0.0), 1, 1e-12) << name;
    }
  }
}

// No point of the space is better than all of the front.
TEST(FrontProblems, HaveNothingBeyondTheirFronts) {
  Random random(2);
  for (const FrontProblem& problem : FrontProblems()) {
    for (int i = 0; i < 20; ++i) {
      std::vector<double> x = PointOnFront(problem, random);
      const std::vector<double> best = problem.values(x);
      for (std::size_t k = problem.reference.size() - 1; k < x.size(); ++k) {
        x[k] = random.Uniform(problem.low[k], problem.high[k]);
      }
      EXPECT_FALSE(Dominates(problem.values(x), best)) << problem.name;
    }
  }
}

// Whether ours are less than theirs beyond what is by chance: Mann-Whitney, one-sided, in
// deviations.
double DeviationsBelow(const std::vector<double>& ours, const std::vector<double>& theirs) {
  double wins = 0;
  for (const double a : ours) {
    for (const double b : theirs) wins += a > b ? 1 : a == b ? 0.5 : 0;
  }
  const auto n = static_cast<double>(ours.size());
  const auto m = static_cast<double>(theirs.size());
  return (n * m / 2 - wins) / std::sqrt(n * m * (n + m + 1) / 12);
}

// As much volume as Optuna's of the same name reach in as many trials (record_nsga_quality.py).
void ExpectAsMuchAsOptuna(const std::string& sampler, const FrontProblem& problem) {
  static const Recorded recorded(ESPALIER_RECORDED_NSGA_QUALITY);
  const std::vector<double>& theirs = recorded[problem.name + "." + sampler];
  std::vector<double> ours;
  for (std::uint64_t seed = 0; seed < theirs.size(); ++seed) {
    ours.push_back(VolumeReached(sampler, {}, problem, 500, seed));
  }
  EXPECT_LT(DeviationsBelow(ours, theirs), 2.6) << problem.name << " " << sampler;
}

TEST(GeneticSamplers, ReachWhatOptunasReach) {
  for (const FrontProblem& problem : FrontProblems()) ExpectAsMuchAsOptuna("nsga2", problem);
}

TEST(GeneticSamplers, ReachWhatOptunasReachInThreeObjectives) {
  for (const FrontProblem& problem : FrontProblems()) {
    if (problem.reference.size() > 2) ExpectAsMuchAsOptuna("nsga3", problem);
  }
}

}  // namespace
}  // namespace espalier::testing
