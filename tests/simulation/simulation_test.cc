#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/simulation/simulated_pool.h"
#include "tests/simulation/simulation_checks.h"
#include "tuner/core/population/truncation.h"

namespace espalier {
namespace {

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

// Longer than a group may show no progress, and it is told of it all the while.
TEST(Simulation, LargeStatesAreHandedOverForAsLongAsTheyMove) {
  int done = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedPool pool(seed, 2, 3, {.large_state = 1});
    pool.Client(CreateStudy{pool.MakeStudy("a", true), false});
    pool.Run(6000);
    ExpectAllEnded(pool, seed);
    done += pool.handovers().done;
    EXPECT_EQ(pool.handovers().cut_off, 0) << "seed " << seed;
    EXPECT_EQ(CountReasons(pool.state(), "comes to form"), 0) << "seed " << seed;
  }
  EXPECT_GT(done, 20);
}

TEST(Simulation, HandoversThatStallAreBegunAnew) {
  SimulatedPool::Handovers all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedPool pool(seed, 2, 3, {.large_state = 1, .stalled_state = 0.3});
    pool.Client(CreateStudy{pool.MakeStudy("a", true), false});
    pool.Run(6000);
    ExpectAllEnded(pool, seed);
    all.done += pool.handovers().done;
    all.stalled += pool.handovers().stalled;
    all.cut_off += pool.handovers().cut_off;
  }
  EXPECT_GT(all.done, 20);
  EXPECT_GT(all.stalled, 5);
  EXPECT_EQ(all.cut_off, 0);
}

// At any moment, from their start to their first steps, whether or not the service is lost
// meanwhile.
TEST(Simulation, ATrialWhoseReplicasFailWhenTheyJoinTrainsOnAsItCan) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Faults faults;
    faults.fail_joining = 1;
    faults.crash_service = seed % 2 == 0 ? 0.01 : 0;
    SimulatedPool pool(seed, 1, 2, faults, 400);
    StudySpec spec = pool.MakeStudy("a", /*elastic=*/true);
    spec.max_trials = 1;
    spec.pruner = {"none", {}};
    ASSERT_TRUE(pool.Client(CreateStudy{spec, false}).status.ok());
    pool.Run(1000);
    EXPECT_EQ(pool.failure(), "") << "seed " << seed;
    const Trial& trial = pool.state().trials.begin()->second;
    EXPECT_EQ(trial.state, TrialState::kComplete) << trial.reason;
    EXPECT_EQ(trial.restarts, 0) << "seed " << seed;
    EXPECT_EQ(trial.values.size(), 400u);
    EXPECT_EQ(trial.failed_joins->in_a_row, kMaxFailedJoins) << "seed " << seed;
    const auto failed = pool.met().find("joining failed");
    // What fails while no service is there to see it may not be counted.
    const int more = faults.crash_service > 0 ? 2 : 0;
    EXPECT_LE(failed->second, kMaxFailedJoins + more) << "seed " << seed;
  }
}

// ---- Nodes that cannot talk, one kind of fault at a time
// -----------------------------------------

struct CutCase {
  const char* name;
  std::vector<std::pair<std::size_t, std::size_t>> ways;
  Contact how;
  bool after_forming = false;
};

class CutNodes : public ::testing::TestWithParam<CutCase> {};

// A trial that may hold two slots, on two nodes of one slot each: whatever is cut, it trains on
// where it was, loses nothing, and is not grown again into what does not work.
TEST_P(CutNodes, CostNobodyItsTraining) {
  SimulatedPool pool(7, 2, 1, {}, 60);
  const auto cut = [&pool] {
    for (const auto& [from, to] : GetParam().ways) pool.Cut(from, to, GetParam().how, 1e6);
  };
  if (!GetParam().after_forming) cut();
  StudySpec spec = pool.MakeStudy("a", /*elastic=*/true);
  spec.max_trials = 1;
  spec.pruner = {"none", {}};
  ASSERT_TRUE(pool.Client(CreateStudy{spec, false}).status.ok());
  pool.Run(8);
  const Trial& trial = pool.state().trials.begin()->second;
  if (GetParam().after_forming) {
    EXPECT_EQ(trial.spans.back().slots.size(), 2u) << "it grew";
    cut();
  }
  pool.Run(200);
  EXPECT_EQ(pool.failure(), "");
  EXPECT_EQ(trial.state, TrialState::kComplete) << trial.reason;
  EXPECT_EQ(trial.restarts, 0);
  EXPECT_EQ(trial.values.size(), 60u);
  EXPECT_EQ(CountReasons(pool.state(), "cannot reach node-"), 1) << "tried once";
  EXPECT_EQ(CountReasons(pool.state(), "hangs"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Simulation, CutNodes,
    ::testing::Values(CutCase{"Refused", {{0, 1}, {1, 0}}, Contact::kRefused},
                      CutCase{"Silent", {{0, 1}, {1, 0}}, Contact::kSilent},
                      CutCase{"OneWay", {{0, 1}}, Contact::kSilent},
                      CutCase{"TheOtherWay", {{1, 0}}, Contact::kSilent},
                      CutCase{"RefusedOneWay", {{1, 0}}, Contact::kRefused},
                      CutCase{"AfterForming", {{0, 1}, {1, 0}}, Contact::kSilent, true},
                      CutCase{"OneWayAfterForming", {{1, 0}}, Contact::kSilent, true}),
    [](const auto& tested) { return tested.param.name; });

TEST(Simulation, WhoIsSlowIsNotTakenForOutOfReach) {
  Faults faults;
  faults.slow_slot = 1;
  SimulatedPool pool(7, 2, 1, faults, 60);
  StudySpec spec = pool.MakeStudy("a", /*elastic=*/true);
  spec.max_trials = 1;
  spec.pruner = {"none", {}};
  ASSERT_TRUE(pool.Client(CreateStudy{spec, false}).status.ok());
  pool.Run(200);
  EXPECT_EQ(pool.state().trials.begin()->second.state, TrialState::kComplete);
  EXPECT_EQ(CountReasons(pool.state(), "cannot reach"), 0);
  EXPECT_EQ(CountReasons(pool.state(), "hangs"), 0);
}

// ---- Populations --------------------------------------------------------------------------------

StudySpec PopulationIn(const SimulatedPool& pool, std::int64_t members,
                       BatchMode mode = BatchMode::kFixed) {
  StudySpec spec = pool.MakeStudy("a", /*elastic=*/true, mode);
  spec.max_trials = members;
  spec.pruner = {"none", {}};
  spec.population.interval = 3;
  spec.population.parameters = {"x"};
  return spec;
}

TEST(Simulation, MembersOfAPopulationTakeOverWhateverIsLost) {
  int replaced = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Faults faults{.kill_replica = 0.005,
                        .break_stream = 0.005,
                        .lose_node = 0.001,
                        .crash_service = 0.005,
                        .profiles = true};
    SimulatedPool pool(seed, 2, 2, faults, 30);
    const BatchMode mode = seed % 2 == 0 ? BatchMode::kFixed : BatchMode::kAdaptive;
    ASSERT_TRUE(pool.Client(CreateStudy{PopulationIn(pool, 6, mode), false}).status.ok());
    pool.Run(200);
    pool.StopFaults();
    pool.Run(2000);
    ExpectAllEnded(pool, seed);
    int clones = 0;
    for (const auto& [id, trial] : pool.state().trials) clones += trial.lineage->cloned() ? 1 : 0;
    EXPECT_EQ(CountReasons(pool.state(), "goes on from there in its place"), clones)
        << "seed " << seed;
    EXPECT_EQ(CountReasons(pool.state(), "ended without reporting \""), 0) << "seed " << seed;
    replaced += clones;
  }
  EXPECT_GT(replaced, 60);
}

// More slots than members, so that all may grow.
TEST(Simulation, MembersThatWillBeReplacedDoNotGrow) {
  int grown = 0;
  int noted = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SimulatedPool pool(seed, 1, 16, {.profiles = true}, 60);
    ASSERT_TRUE(pool.Client(CreateStudy{PopulationIn(pool, 4), false}).status.ok());
    pool.Run(2000);
    ExpectAllEnded(pool, seed);
    const Study& study = pool.state().studies.begin()->second;
    std::map<std::int64_t, std::int64_t> barred;  // by trial, until which step
    for (const Decision& decision : study.decisions) {
      if (decision.trial_number < 0) continue;
      const Trial& trial =
          pool.state().trials.at(study.trials[static_cast<std::size_t>(decision.trial_number)]);
      std::int64_t step = 0;
      for (const IntermediateValue& value : trial.values) {
        if (value.at <= decision.at) step = value.step;
      }
      if (decision.reason.find("it gets no more slots until") != std::string::npos) {
        ++noted;
        barred[trial.number] = ComparedAt(study.spec.population, step) + 3;
      }
      if (decision.kind != DecisionKind::kGrow) continue;
      ++grown;
      const bool is_replaced = trial.reason.find("in its place") != std::string::npos &&
                               trial.values.back().step == barred[trial.number];
      EXPECT_FALSE(is_replaced && step < barred[trial.number])
          << "seed " << seed << ": trial " << trial.number << " at step " << step;
    }
  }
  EXPECT_GT(grown, 20);
  EXPECT_GT(noted, 5);
}

// ---- Checkpoints, one kind of fault at a time ---------------------------------------------------

// A trial that may hold one slot, on two nodes of one slot each.
StudySpec LoneTrial(const SimulatedPool& pool) {
  StudySpec spec = pool.MakeStudy("a", /*elastic=*/true);
  spec.max_trials = 1;
  spec.max_slots = 1;
  spec.pruner = {"none", {}};
  return spec;
}

std::size_t NodeOf(const SimulatedPool& pool, const Trial& trial) {
  const std::string& name = pool.state().nodes.at(trial.spans.back().slots.front().node);
  return name == "node-0" ? 0 : 1;
}

std::string OnlyStudy(const SimulatedPool& pool) {
  return pool.state().studies.begin()->second.spec.name;
}

TEST(Simulation, ALostNodeWithItsDiskCostsNoMoreThanSinceTheLastCopy) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedPool pool(seed, 2, 1, {}, 60);
    ASSERT_TRUE(pool.Client(CreateStudy{LoneTrial(pool), false}).status.ok());
    pool.Run(8);
    const Trial& trial = pool.state().trials.begin()->second;
    ASSERT_EQ(trial.copies.size(), 2u) << "seed " << seed;
    const std::int64_t copied = std::min(trial.copies[0].what.step, trial.copies[1].what.step);
    EXPECT_GT(copied, 0);
    pool.LoseNode(NodeOf(pool, trial), /*with_disk=*/true, 1e6);
    pool.Run(300);
    EXPECT_EQ(pool.failure(), "") << "seed " << seed;
    EXPECT_EQ(trial.state, TrialState::kComplete) << trial.reason;
    EXPECT_EQ(trial.restarts, 0);
    EXPECT_EQ(trial.values.size(), 60u);
  }
}

TEST(Simulation, ALostNodeThatComesBackIsWaitedForWhereItAloneHasTheCheckpoint) {
  SimulatedPool pool(3, 2, 1, {}, 60);
  ASSERT_TRUE(pool.Client(CreateStudy{LoneTrial(pool), false}).status.ok());
  pool.Cut(0, 1, Contact::kRefused, 1e6);  // so that nothing can be copied
  pool.Cut(1, 0, Contact::kRefused, 1e6);
  pool.Run(8);
  const Trial& trial = pool.state().trials.begin()->second;
  ASSERT_EQ(trial.copies.size(), 1u);
  EXPECT_GT(pool.checkpoints().in_vain, 0);
  pool.LoseNode(NodeOf(pool, trial), /*with_disk=*/false, 60);
  pool.Run(300);
  EXPECT_EQ(pool.failure(), "");
  EXPECT_EQ(CountReasons(pool.state(), "waits for node"), 1);
  EXPECT_EQ(trial.state, TrialState::kComplete) << trial.reason;
}

TEST(Simulation, ACheckpointThatIsLostForGoodIsAnError) {
  SimulatedPool pool(3, 2, 1, {}, 60);
  ASSERT_TRUE(pool.Client(CreateStudy{LoneTrial(pool), false}).status.ok());
  pool.Cut(0, 1, Contact::kRefused, 1e6);
  pool.Cut(1, 0, Contact::kRefused, 1e6);
  pool.Run(8);
  const Trial& trial = pool.state().trials.begin()->second;
  pool.LoseNode(NodeOf(pool, trial), /*with_disk=*/true, 30);
  pool.Run(1000);
  EXPECT_EQ(pool.failure(), "");
  EXPECT_EQ(trial.state, TrialState::kFail);
  EXPECT_NE(trial.reason.find("no other node has one"), std::string::npos) << trial.reason;
}

// As the node of the trial starts it again, it finds its copy damaged.
TEST(Simulation, ADamagedCheckpointIsFetchedFromAnotherNode) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedPool pool(seed, 2, 1, {}, 60);
    ASSERT_TRUE(pool.Client(CreateStudy{LoneTrial(pool), false}).status.ok());
    pool.Run(8);
    const Trial& trial = pool.state().trials.begin()->second;
    ASSERT_EQ(trial.copies.size(), 2u) << "seed " << seed;
    ASSERT_TRUE(pool.Client(StopStudy{OnlyStudy(pool)}).status.ok());
    pool.Run(10);
    ASSERT_EQ(trial.copies.size(), 2u) << "seed " << seed;
    pool.Damage(NodeOf(pool, trial));
    ASSERT_TRUE(pool.Client(ResumeStudy{OnlyStudy(pool), 0, 0}).status.ok());
    pool.Run(300);
    EXPECT_EQ(pool.failure(), "") << "seed " << seed;
    EXPECT_EQ(trial.state, TrialState::kComplete) << trial.reason;
    EXPECT_EQ(trial.restarts, 0);
    EXPECT_EQ(trial.values.size(), 60u);
    found += pool.checkpoints().damaged;
  }
  EXPECT_GT(found, 0);
}

TEST(Simulation, ACheckpointOfWhichAllCopiesAreDamagedIsAnErrorThatSaysSo) {
  SimulatedPool pool(3, 2, 1, {}, 60);
  ASSERT_TRUE(pool.Client(CreateStudy{LoneTrial(pool), false}).status.ok());
  pool.Run(8);
  const Trial& trial = pool.state().trials.begin()->second;
  ASSERT_TRUE(pool.Client(StopStudy{OnlyStudy(pool)}).status.ok());
  pool.Run(10);
  ASSERT_EQ(trial.copies.size(), 2u);
  pool.Damage(0);
  pool.Damage(1);
  ASSERT_TRUE(pool.Client(ResumeStudy{OnlyStudy(pool), 0, 0}).status.ok());
  pool.Run(60);
  EXPECT_EQ(pool.failure(), "");
  EXPECT_EQ(trial.state, TrialState::kFail);
  EXPECT_EQ(trial.restarts, 0);
  EXPECT_NE(trial.reason.find("no node has its checkpoint step-"), std::string::npos)
      << trial.reason;
}

}  // namespace
}  // namespace espalier
