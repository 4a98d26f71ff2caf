#include "tests/simulation/simulation_checks.h"

#include <gtest/gtest.h>

namespace espalier {

namespace {

void ExpectFiguresFit(const Decision& decision, const std::string& where) {
  const AllocationFigures& figures = *decision.figures;
  EXPECT_GE(figures.promise, 0) << where;
  EXPECT_LE(figures.promise, 1) << where;
  EXPECT_EQ(figures.speedup_before > 0, decision.from_slots > 0) << where;
  EXPECT_EQ(figures.speedup_after > 0, decision.to_slots > 0) << where;
  int taken = 0;
  for (const SlotsTaken& from : figures.from) taken += from.slots;
  EXPECT_LE(taken, decision.to_slots) << where;
}

}  // namespace

void ExpectAllEnded(const SimulatedPool& pool, std::uint64_t seed) {
  EXPECT_EQ(pool.failure(), "") << "seed " << seed;
  EXPECT_TRUE(pool.AllStudiesEnded())
      << "seed " << seed << ": not ended at " << pool.now_s() << " s";
  for (const auto& [id, trial] : pool.state().trials) {
    EXPECT_TRUE(Ended(trial.state) || pool.state().studies.at(trial.study).spec.by_clients())
        << "seed " << seed << ": trial " << id.value << " is left " << ToString(trial.state);
    EXPECT_TRUE(trial.spans.empty() || trial.spans.back().to != Time{}) << "seed " << seed;
  }
  for (const auto& [id, study] : pool.state().studies) {
    for (const Decision& decision : study.decisions) {
      if (decision.figures) {
        ExpectFiguresFit(decision, "seed " + std::to_string(seed) + ": " + decision.reason);
      }
    }
  }
}

int CountReasons(const TunerState& state, const std::string& text) {
  int count = 0;
  for (const auto& [id, study] : state.studies) {
    for (const Decision& decision : study.decisions) {
      count += decision.reason.find(text) == std::string::npos ? 0 : 1;
    }
  }
  return count;
}

}  // namespace espalier
