#include "allocator/allocation/knapsack.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/allocator/pools.h"

namespace espalier {
namespace {

// Concave on the whole, with dips, as speedups are.
std::vector<KnapsackChoice> RandomItem(Random& random, int most) {
  std::vector<KnapsackChoice> choices;
  const double weight = random.Uniform();
  const double bend = random.Uniform(0.3, 1);
  int slots = IntBelow(random, 2);
  for (; slots <= most; slots += 1 + IntBelow(random, 2)) {
    choices.push_back({slots, weight * std::pow(slots, bend) * random.Uniform(0.9, 1.0)});
  }
  if (choices.empty()) choices.push_back({most, 0.0});
  return choices;
}

int SlotsOf(const std::vector<std::vector<KnapsackChoice>>& items,
            const std::vector<int>& solution) {
  int slots = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    slots += items[i][static_cast<std::size_t>(solution[i])].slots;
  }
  return slots;
}

double ValueOf(const std::vector<std::vector<KnapsackChoice>>& items,
               const std::vector<int>& solution) {
  double value = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    value += items[i][static_cast<std::size_t>(solution[i])].value;
  }
  return value;
}

double BestOfAll(const std::vector<std::vector<KnapsackChoice>>& items, std::size_t i, int room) {
  if (i == items.size()) return 0;
  double best = -std::numeric_limits<double>::infinity();
  for (const KnapsackChoice& choice : items[i]) {
    if (choice.slots > room) continue;
    best = std::max(best, choice.value + BestOfAll(items, i + 1, room - choice.slots));
  }
  return best;
}

TEST(SolveKnapsack, FindsTheBestOfAllWhereSmall) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    std::vector<std::vector<KnapsackChoice>> items;
    const int count = 1 + IntBelow(random, 5);
    for (int j = 0; j < count; ++j) items.push_back(RandomItem(random, 1 + IntBelow(random, 6)));
    const int capacity = IntBelow(random, 14);
    const auto solution = SolveKnapsack(items, capacity);
    const double best = BestOfAll(items, 0, capacity);
    if (!solution) {
      EXPECT_TRUE(std::isinf(best));
      continue;
    }
    EXPECT_LE(SlotsOf(items, *solution), capacity);
    EXPECT_NEAR(ValueOf(items, *solution), best, 1e-9);
  }
}

TEST(SolveKnapsack, ComesCloseByPriceWhereLarge) {
  Random random(4);
  std::vector<std::vector<KnapsackChoice>> items;
  for (int j = 0; j < 300; ++j) items.push_back(RandomItem(random, 40));
  const int capacity = 1200;
  const auto by_price = SolveKnapsack(items, capacity);
  ASSERT_TRUE(by_price.has_value());
  EXPECT_LE(SlotsOf(items, *by_price), capacity);
  // Exactly, by dynamic programming written for this test.
  std::vector<double> best(capacity + 1, 0.0);
  for (const auto& item : items) {
    std::vector<double> next(best.size(), -std::numeric_limits<double>::infinity());
    for (const KnapsackChoice& choice : item) {
      for (auto c = static_cast<std::size_t>(choice.slots); c < best.size(); ++c) {
        next[c] =
            std::max(next[c], best[c - static_cast<std::size_t>(choice.slots)] + choice.value);
      }
    }
    best = next;
  }
  EXPECT_GE(ValueOf(items, *by_price), 0.999 * best.back());
}

TEST(SolveKnapsack, SaysWhenEvenTheLeastIsTooMuch) {
  EXPECT_FALSE(SolveKnapsack(std::vector<std::vector<KnapsackChoice>>{{{2, 1.0}}, {{3, 1.0}}}, 4));
  EXPECT_TRUE(SolveKnapsack(std::vector<std::vector<KnapsackChoice>>{}, 0));
}

}  // namespace
}  // namespace espalier
