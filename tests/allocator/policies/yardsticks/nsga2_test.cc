#include "allocator/policies/yardsticks/nsga2.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gtest/gtest.h"

namespace espalier {
namespace {

// Schaffer's problem on a number of 12 bits in [-4, 4): costs x^2 and (x - 2)^2. Every x in [0, 2]
// is optimal.
class Schaffer : public GeneticProblem {
 public:
  void Cross(Genome& a, Genome& b, Random& random) override {
    const auto cut = static_cast<std::ptrdiff_t>(random.Below(a.size()));
    std::swap_ranges(a.begin(), a.begin() + cut, b.begin());
  }
  void Mutate(Genome& genome, Random& random) override { ++genome[random.Below(genome.size())]; }
  void Repair(Genome& genome, Random&) override {
    for (std::uint16_t& bit : genome) bit = static_cast<std::uint16_t>(bit & 1);
  }
  Costs Evaluate(const Genome& genome) override {
    ++evaluations;
    const double x = ValueOf(genome);
    return {x * x, (x - 2) * (x - 2)};
  }
  static double ValueOf(const Genome& genome) {
    int value = 0;
    for (const std::uint16_t bit : genome) value = 2 * value + bit;
    return value / 512.0 - 4;
  }
  int evaluations = 0;
};

TEST(Nsga2, SpreadsOverTheOptimalFront) {
  Schaffer problem;
  Random random(7);
  const auto found = Nsga2(problem, {Genome(12, 1)}, {.population = 40, .generations = 60}, random);
  ASSERT_EQ(found.size(), 40u);
  std::vector<double> front;
  std::set<Genome> distinct;
  for (const Candidate& candidate : found) {
    distinct.insert(candidate.genome);
    if (candidate.rank == 0) front.push_back(Schaffer::ValueOf(candidate.genome));
  }
  EXPECT_EQ(distinct.size(), found.size());
  std::sort(front.begin(), front.end());
  ASSERT_GE(front.size(), 35u);
  EXPECT_NEAR(front.front(), 0, 0.05);
  EXPECT_NEAR(front.back(), 2, 0.05);
  for (std::size_t i = 1; i < front.size(); ++i) EXPECT_LT(front[i] - front[i - 1], 0.3);
  EXPECT_LE(problem.evaluations, 40 * 60);
}

TEST(Nsga2, GivesTheSameForTheSameSeed) {
  std::vector<std::vector<Genome>> results;
  for (const std::uint64_t seed : {3u, 3u, 4u}) {
    Schaffer problem;
    Random random(seed);
    std::vector<Genome>& result = results.emplace_back();
    for (const Candidate& candidate :
         Nsga2(problem, {Genome(12, 0)}, {.population = 10, .generations = 5}, random)) {
      result.push_back(candidate.genome);
    }
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
}

TEST(Nsga2, EndsWhereThereIsOnlyOneCandidate) {
  Schaffer problem;
  Random random(1);
  const auto found = Nsga2(problem, {Genome(1, 0)}, {.population = 10, .generations = 100}, random);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_EQ(problem.evaluations, 2);
}

TEST(Survive, RanksByDominationAndPrefersTheLonely) {
  std::vector<Candidate> candidates;
  for (const Costs& costs :
       std::vector<Costs>{{0, 10}, {1, 9}, {1.1, 8.9}, {5, 5}, {10, 0}, {5, 5}, {6, 6}, {11, 11}}) {
    candidates.push_back({.costs = costs});
  }
  Survive(candidates, 5);
  ASSERT_EQ(candidates.size(), 5u);
  std::multiset<Costs> kept;
  for (const Candidate& candidate : candidates) {
    EXPECT_EQ(candidate.rank, 0);
    kept.insert(candidate.costs);
  }
  // One of the equal ones at (5, 5) has no room of its own and goes.
  EXPECT_EQ(kept, (std::multiset<Costs>{{0, 10}, {1, 9}, {1.1, 8.9}, {5, 5}, {10, 0}}));

  std::vector<Candidate> pair{{.costs = {1, 1}}, {.costs = {2, 2}}};
  Survive(pair, 5);
  EXPECT_EQ(pair[0].rank, 0);
  EXPECT_EQ(pair[1].rank, 1);
}

}  // namespace
}  // namespace espalier
