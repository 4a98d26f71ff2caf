#include "allocator/simulator/cluster.h"

#include <algorithm>
#include <cstdio>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/simulator/small_loads.h"

namespace espalier {
namespace {

Timeline Simulate(const ClusterLoad& load, const std::string& policy,
                  const ClusterOptions& options) {
  auto made = MakePolicy(policy, {});
  EXPECT_TRUE(made.ok()) << made.status();
  auto timeline = SimulateCluster(load, **made, options);
  EXPECT_TRUE(timeline.ok()) << timeline.status();
  return timeline.ok() ? *timeline : Timeline{};
}

std::string Bytes(const Timeline& timeline) {
  std::string text;
  char line[200];
  for (const TimelineRow& row : timeline.rows) {
    std::snprintf(line, sizeof line, "%.17g %.17g %d;", row.submitted_s, row.ended_s, row.resizes);
    text += row.name + row.outcome + line;
    for (const TimelineSpan& span : row.spans) {
      std::snprintf(line, sizeof line, "%.17g-%.17g %d %d;", span.from_s, span.to_s, span.slots,
                    span.nodes);
      text += line;
    }
  }
  for (const TimelineDecision& d : timeline.decisions) {
    std::snprintf(line, sizeof line, "%.17g %d %d ", d.at_s, d.from_slots, d.to_slots);
    text += line + d.row + d.reason;
  }
  for (const auto& [name, value] : timeline.figures) {
    std::snprintf(line, sizeof line, "%.17g", value);
    text += name + line;
  }
  return text;
}

// The most slots held at any instant.
int MostHeld(const Timeline& timeline) {
  std::vector<std::pair<double, int>> changes;
  for (const TimelineRow& row : timeline.rows) {
    for (const TimelineSpan& span : row.spans) {
      changes.emplace_back(span.from_s, span.slots);
      changes.emplace_back(span.to_s, -span.slots);
    }
  }
  std::sort(changes.begin(), changes.end());  // what ends comes before what starts then
  int held = 0;
  int most = 0;
  for (const auto& [at_s, change] : changes) most = std::max(most, held += change);
  return most;
}

struct Mode {
  std::string name;
  ClusterOptions options;
};

std::vector<Mode> Modes() {
  ClusterOptions requested;
  requested.batch = BatchRule::kRequested;
  ClusterOptions events;
  events.on_events = true;
  events.resize_cost_s = 0.1;
  return {{"cycles", {}}, {"requested", requested}, {"events", events}};
}

class ClusterTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ClusterTest, FinishesEveryJobWithinTheSlotsThereAre) {
  const ClusterLoad load = SmallLoad(7);
  for (const Mode& mode : Modes()) {
    SCOPED_TRACE(mode.name);
    const Timeline timeline = Simulate(load, GetParam(), mode.options);
    EXPECT_EQ(timeline.slots, 4);
    EXPECT_LE(MostHeld(timeline), 4);
    ASSERT_EQ(timeline.rows.size(), 7u);
    for (const TimelineRow& row : timeline.rows) {
      EXPECT_EQ(row.outcome, "complete");
      ASSERT_FALSE(row.spans.empty());
      EXPECT_GE(row.spans.front().from_s, row.submitted_s);
      EXPECT_DOUBLE_EQ(row.spans.back().to_s, row.ended_s);
      for (std::size_t i = 1; i < row.spans.size(); ++i) {
        EXPECT_GE(row.spans[i].from_s, row.spans[i - 1].to_s);
      }
    }
    for (const TimelineDecision& decision : timeline.decisions) {
      EXPECT_FALSE(decision.reason.empty());
    }
  }
}

TEST_P(ClusterTest, GivesTheSameBytesAgain) {
  const ClusterLoad load = SmallLoad(5);
  for (const Mode& mode : Modes()) {
    SCOPED_TRACE(mode.name);
    EXPECT_EQ(Bytes(Simulate(load, GetParam(), mode.options)),
              Bytes(Simulate(load, GetParam(), mode.options)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ClusterTest, ::testing::ValuesIn(Policies().Names()),
                         [](const auto& row) { return row.param; });

TEST(SimulateCluster, DecidesAtOnceOnEvents) {
  ClusterOptions options;
  options.on_events = true;
  options.resize_cost_s = 0.1;
  const Timeline timeline = Simulate(SmallLoad(2), "fixed", options);
  ASSERT_EQ(timeline.decisions.size(), 2u);
  EXPECT_LE(timeline.decisions[0].at_s, 1);
  EXPECT_DOUBLE_EQ(timeline.decisions[1].at_s, 30);
}

TEST(SimulateCluster, DecidesOnTheMinuteOtherwise) {
  const Timeline timeline = Simulate(SmallLoad(2), "fixed", {});
  ASSERT_EQ(timeline.decisions.size(), 2u);
  EXPECT_EQ(timeline.decisions[0].at_s, 60);
  EXPECT_EQ(timeline.decisions[1].at_s, 60);
}

TEST(SimulateCluster, RefusesWhatCannotBe) {
  const auto policy = *MakePolicy("fixed", {});
  ClusterOptions options;
  options.interval_s = 0.5;
  EXPECT_EQ(std::string(SimulateCluster(SmallLoad(1), *policy, options).status().message()),
            "simulated cluster: interval_s needs whole seconds unless decisions are made on "
            "events, got 0.5");
  ClusterLoad load = SmallLoad(1);
  load.jobs[0].application = nullptr;
  EXPECT_EQ(std::string(SimulateCluster(load, *policy, {}).status().message()),
            "job \"job 0\" has no application");
}

TEST(SimulateCluster, GivesUpOnALoadThatTakesTooLong) {
  ClusterOptions options;
  options.longest_s = 100;
  const auto timeline = SimulateCluster(SmallLoad(4, 200), **MakePolicy("fixed", {}), options);
  EXPECT_EQ(timeline.status().code(), absl::StatusCode::kDeadlineExceeded);
}

class Greedy : public Policy {
  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    return {{pool.jobs[0].id, {{NodeId(1), 3}}, "takes more than there is"}};
  }
};

TEST(SimulateCluster, RefusesAPolicyThatGivesOutTooMuch) {
  Greedy greedy;
  EXPECT_EQ(std::string(SimulateCluster(SmallLoad(1), greedy, {}).status().message()),
            "the policy gave out 3 slots of node 1, which has 2");
}

TEST(FiguresOf, InterpolatesQuantiles) {
  Timeline timeline;
  timeline.slots = 2;
  for (const double end_s : {10.0, 20.0, 40.0}) {
    TimelineRow& row = timeline.rows.emplace_back();
    row.ended_s = end_s;
    row.resizes = 1;
    row.spans.push_back({0, end_s, 1, 1});
  }
  const ClusterFigures figures = FiguresOf(timeline);
  EXPECT_DOUBLE_EQ(figures.average_s, 70.0 / 3);
  EXPECT_DOUBLE_EQ(figures.p50_s, 20);
  EXPECT_DOUBLE_EQ(figures.p99_s, 20 + 0.98 * 20);
  EXPECT_DOUBLE_EQ(figures.makespan_s, 40);
  EXPECT_DOUBLE_EQ(figures.mean_resizes, 1);
  EXPECT_DOUBLE_EQ(figures.slot_use, 70.0 / 80);
}

}  // namespace
}  // namespace espalier
