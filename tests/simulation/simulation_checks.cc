#include "tests/simulation/simulation_checks.h"

#include <gtest/gtest.h>

namespace espalier {

void ExpectAllEnded(const SimulatedPool& pool, std::uint64_t seed) {
  EXPECT_EQ(pool.failure(), "") << "seed " << seed;
  EXPECT_TRUE(pool.AllStudiesEnded())
      << "seed " << seed << ": not ended at " << pool.now_s() << " s";
  for (const auto& [id, trial] : pool.state().trials) {
    EXPECT_TRUE(Ended(trial.state) || pool.state().studies.at(trial.study).spec.by_clients())
        << "seed " << seed << ": trial " << id.value << " is left " << ToString(trial.state);
    EXPECT_TRUE(trial.spans.empty() || trial.spans.back().to != Time{}) << "seed " << seed;
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
