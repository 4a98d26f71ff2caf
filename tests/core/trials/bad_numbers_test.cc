// Numbers of a program that make no sense do not reach the allocator, and the record says so.

#include <limits>

#include "gmock/gmock.h"
#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class BadNumbers : public CoreTest {
 protected:
  // Progress of the first trial, with steps that are longer at each call.
  void Progress(ReplicaId replica, GradientNoise noise) {
    ReplicaProgress progress;
    progress.step = ++steps_;
    progress.global_batch_size = 64;
    progress.noise = noise;
    progress.profile.push_back({{1, 1, 64}, 10, 1.0 * steps_, 10, 1.5 * steps_, 0.5});
    Step(FromReplica{replica, progress});
    Wait(2);
  }

  std::vector<std::string> Refusals() {
    std::vector<std::string> refusals;
    for (const Decision& decision : study().decisions) {
      if (decision.reason.find("cannot work with its numbers") != std::string::npos) {
        refusals.push_back(decision.reason);
      }
    }
    return refusals;
  }

  int steps_ = 0;
};

TEST_F(BadNumbers, AreRefusedWithTheTrialsNameOnce) {
  const std::vector<ReplicaId> replicas = TwoReplicas();
  Progress(replicas[0], {2, 4});
  EXPECT_TRUE(Refusals().empty());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Progress(replicas[0], {nan, 4});
  Progress(replicas[0], {2, -1});
  const std::vector<std::string> refusals = Refusals();
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_THAT(refusals[0], HasSubstr("trial 0: squared gradient needs a number >= 0, got nan"));
  // It goes on where it is.
  EXPECT_EQ(trial().state, TrialState::kRunning);
  EXPECT_EQ(core_.SlotsHeld(), 2);
  EXPECT_EQ(core_.Activity(TrialId(1)).figures[Figure::kThroughput], 0)
      << "nothing is made of such numbers";
}

TEST_F(BadNumbers, OfBatchesAreRefusedBeforeTheyAreUsed) {
  Step(CreateStudy{Spec(1), false});
  Join(2);
  const ReplicaId replica = starts_.at(0).replica;
  Step(FromReplica{replica, ReplicaReady{"host:1", {64, 64, 8, 4, true}, 10}});
  Form(regroups_);
  Progress(replica, {2, 4});
  Wait(10);
  ASSERT_EQ(Refusals().size(), 1u);
  EXPECT_THAT(Refusals()[0], HasSubstr("largest microbatch needs at least the smallest, 8, got 4"));
}

// A trial that has told no value that counts has no cost yet, which is no fault of its numbers.
TEST_F(BadNumbers, OfTheMetricAreNotRefused) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<ReplicaId> replicas = TwoReplicas();
  std::int64_t step = 0;
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -infinity, infinity}) {
    Step(FromReplica{replicas[0], ReplicaReport{++step, bad, 1}});
    Progress(replicas[0], {2, 4});
    Wait(30);
    EXPECT_TRUE(Refusals().empty()) << bad;
  }
}

}  // namespace
}  // namespace espalier
