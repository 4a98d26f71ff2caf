#include <gtest/gtest.h>

#include "tests/simulation/simulated_pool.h"

namespace espalier {
namespace {

// Every trial of every study has ended, and nothing holds a slot.
void ExpectAllEnded(const SimulatedPool& pool, std::uint64_t seed) {
  EXPECT_EQ(pool.failure(), "") << "seed " << seed;
  EXPECT_TRUE(pool.AllStudiesEnded())
      << "seed " << seed << ": not ended at " << pool.now_s() << " s";
  for (const auto& [id, trial] : pool.state().trials) {
    EXPECT_TRUE(Ended(trial.state) || pool.state().studies.at(trial.study).spec.ask_and_tell)
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

TEST(Simulation, StudiesEndWithoutFaults) {
  SimulatedPool pool(1, 2, 3, {});
  ASSERT_TRUE(pool.Client(CreateStudy{pool.MakeStudy("a", true), false}).status.ok());
  pool.Run(600);
  ASSERT_TRUE(pool.Client(CreateStudy{pool.MakeStudy("b", false), false}).status.ok());
  pool.Run(600);
  ExpectAllEnded(pool, 1);
  EXPECT_EQ(pool.state().trials.size(), 48u);
  int grown = 0;
  for (const auto& [id, trial] : pool.state().trials) {
    grown += static_cast<int>(trial.resizes.size());
    EXPECT_EQ(trial.restarts, 0);
  }
  EXPECT_GT(grown, 0) << "elastic trials use the slots that others leave";
}

TEST(Simulation, SameSeedSameChanges) {
  const Faults faults{0.005, 0.005, 0.001, 0.002, 0.02, 0.001, 0.001, 0.002, 0.001, 0.1, 0.2, true};
  std::vector<std::size_t> sizes;
  std::vector<double> ends;
  for (int repeat = 0; repeat < 2; ++repeat) {
    SimulatedPool pool(42, 3, 2, faults);
    pool.Client(CreateStudy{pool.MakeStudy("a", true), false});
    pool.Run(60);
    sizes.push_back(pool.committed().size());
    ends.push_back(pool.now_s());
  }
  EXPECT_EQ(sizes[0], sizes[1]);
  EXPECT_EQ(ends[0], ends[1]);
}

// Each seed is a pool of its own with every kind of fault; then the faults stop, and what was
// started must come to its end.
TEST(Simulation, ThousandSeedsWithFaults) {
  std::int64_t steps = 0;
  std::int64_t restarts = 0;
  std::int64_t client_grants = 0;
  std::map<std::string, int> said = {{"hangs", 0},
                                     {"hung", 0},
                                     {"could not reach", 0},
                                     {"replaced by", 0},
                                     {"faster without it", 0},
                                     {"steps at equal progress", 0},
                                     {"waits to come among", 0},
                                     {"was never promoted", 0},
                                     {"cannot be paused", 0},
                                     {"its client asked for", 0},
                                     {"given back by its client", 0},
                                     {"its client was silent", 0},
                                     {"make room for it", 0},
                                     {"slots that a client waits for", 0},
                                     {"node-1 was lost", 0}};
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random shape(seed);
    // Long enough to be found slow, and grown beyond two replicas.
    const bool long_trials = seed % 10 == 0;
    Faults faults{0.02 * shape.Uniform(),  0.02 * shape.Uniform(),  0.003 * shape.Uniform(),
                  0.01 * shape.Uniform(),  0.05 * shape.Uniform(),  0.002 * shape.Uniform(),
                  0.005 * shape.Uniform(), 0.005 * shape.Uniform(), 0.001 * shape.Uniform(),
                  0.2 * shape.Uniform(),   long_trials ? 0.3 : 0,   long_trials};
    if (seed % 2 == 0) faults.client = 0.1;
    SimulatedPool pool(seed, 1 + static_cast<int>(shape.Below(3)),
                       1 + static_cast<int>(shape.Below(4)), faults, long_trials ? 80 : 9);
    const BatchMode mode = seed % 5 == 0 ? BatchMode::kAdaptive : BatchMode::kFixed;
    StudySpec first = pool.MakeStudy("a", seed % 4 != 0 || long_trials, mode);
    if (seed % 3 == 1) first.pruner = {"asha_promote", {{"eta", 2}}};
    if (long_trials) {
      first.pruner = {"none", {}};
      first.max_trials = 5;
    }
    while (pool.state().studies.empty()) {
      pool.Client(CreateStudy{first, true});
    }
    if (seed % 3 == 0) pool.Client(CreateStudy{pool.MakeStudy("b", true), true});
    pool.Run(40);
    pool.StopFaults();
    pool.Run(2000);
    ExpectAllEnded(pool, seed);
    if (::testing::Test::HasFailure()) break;
    for (const auto& [text, count] : said) said[text] += CountReasons(pool.state(), text);
    steps += pool.steps();
    restarts += pool.restarts();
    client_grants += pool.client_grants();
  }
  EXPECT_GT(steps, 200'000);
  for (const auto& [text, count] : said) {
    EXPECT_GT(count, 0) << "no decision says \"" << text << "\": its path was not taken";
  }
  EXPECT_GT(client_grants, 1000);
  EXPECT_GT(restarts, 500) << "the service must have crashed often for this to mean something";
}

}  // namespace
}  // namespace espalier
