#include "allocator/policies/yardsticks/sia_rows.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/allocator/random_pools.h"

namespace espalier {
namespace {

double ValueOf(const std::vector<SiaRow>& rows, const std::vector<int>& chosen,
               std::vector<int> capacity) {
  double value = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (chosen[i] < 0) continue;
    const SiaEntry& entry = rows[i][static_cast<std::size_t>(chosen[i])];
    value += entry.value;
    capacity[static_cast<std::size_t>(entry.type)] -= entry.slots;
  }
  for (const int left : capacity) EXPECT_GE(left, 0);
  return value;
}

double BestOf(const std::vector<SiaRow>& rows, std::size_t i, std::vector<int> capacity) {
  if (i == rows.size()) return 0;
  double best = BestOf(rows, i + 1, capacity);
  for (const SiaEntry& entry : rows[i]) {
    int& left = capacity[static_cast<std::size_t>(entry.type)];
    if (entry.slots > left) continue;
    left -= entry.slots;
    best = std::max(best, entry.value + BestOf(rows, i + 1, capacity));
    left += entry.slots;
  }
  return best;
}

std::vector<SiaRow> RandomRows(Random& random, int types) {
  std::vector<SiaRow> rows(1 + random.Below(5));
  for (SiaRow& row : rows) {
    for (int type = 0; type < types; ++type) {
      double goodput = random.Uniform(1, 3);
      for (int slots = 1; slots <= 8; slots *= 2) {
        row.push_back({.type = type, .slots = slots, .value = 1.1 - std::pow(goodput, -0.5)});
        goodput *= random.Uniform(0.9, 2);
      }
    }
  }
  return rows;
}

TEST(ChooseEntries, IsTheOptimumOnOneType) {
  Random random(1);
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    const std::vector<SiaRow> rows = RandomRows(random, 1);
    const std::vector<int> capacity = {1 + IntBelow(random, 16)};
    EXPECT_NEAR(ValueOf(rows, ChooseEntries(rows, capacity), capacity), BestOf(rows, 0, capacity),
                1e-9);
  }
}

TEST(ChooseEntries, IsCloseToTheOptimumOnTwoTypes) {
  Random random(2);
  double sum = 0;
  double best = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<SiaRow> rows = RandomRows(random, 2);
    const std::vector<int> capacity = {1 + IntBelow(random, 10), 1 + IntBelow(random, 10)};
    sum += ValueOf(rows, ChooseEntries(rows, capacity), capacity);
    best += BestOf(rows, 0, capacity);
  }
  EXPECT_GE(sum, 0.97 * best);
}

TEST(SiaRow, HoldsPowersOfTwoWithinANodeAndWholeNodesBeyond) {
  Job job = WaitingJob(1, 14);
  job.max_profiled_replicas = 8;
  job.goodput = Scaling(0.01);
  const Pool pool{{Node(1, 4), Node(2, 4), Node(3, 4), Node(4, 4)}, {job}};
  Board board(pool);
  const SiaRow row = SiaRowOf(board, 0, -0.5, 1.1);
  std::vector<std::pair<int, int>> shapes;
  for (const SiaEntry& entry : row) shapes.emplace_back(entry.nodes, entry.slots);
  EXPECT_EQ(shapes, (std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 4}, {2, 8}, {3, 12}}));
  // The least goodput of the row is one: lambda less one.
  EXPECT_NEAR(row[0].value, 0.1, 1e-9);
}

TEST(SiaRow, CountsARestartUnlessTheTrialStays) {
  Job job = RunningJob(1, {{NodeId(1), 2}}, 0.5);
  job.max_profiled_replicas = 4;
  job.goodput = Scaling(0.01);
  job.age_s = 90;
  job.resizes = 1;
  job.resize_cost_s = 30;
  const Pool pool{{Node(1, 4)}, {job}};
  Board board(pool);
  const SiaRow row = SiaRowOf(board, 0, -0.5, 1.1);
  ASSERT_EQ(row.size(), 4u);
  // (90 - 30) / (90 + 30) of what one slot gives.
  EXPECT_NEAR(row[0].value, 1.1 - std::pow(0.5, -0.5), 1e-9);
  EXPECT_NEAR(row[1].value, 1.1 - std::pow(board.SpeedupNow(0), -0.5), 1e-9);
}

}  // namespace
}  // namespace espalier
