// What a trial's resizes cost is known before its first one, from those of its study's other
// trials.

#include <algorithm>
#include <cstddef>

#include "tests/core/core_fixture.h"

namespace espalier {
namespace {

class ResizeCost : public CoreTest {
 protected:
  ReplicaId StartNext() {
    const ReplicaId replica = Ready(starts_.at(0).replica);
    Form(regroups_);
    return replica;
  }

  // The first trial grows to two slots with a pause of so many seconds; then the second, that has
  // only trained on one, has room for many. Returns on how many it tries to run.
  std::ptrdiff_t TriedAfterAPauseOf(double pause_s) {
    Step(CreateStudy{Spec(2), false});
    Join("a", 1);
    StartNext();
    Join("b", 1);
    const ReplicaId second = StartNext();
    Wait(3);
    Join("c", 1);
    EXPECT_EQ(starts_.at(0).trial, TrialId(1));
    Ready(starts_.at(0).replica);
    const RegroupCommand regroup = regroups_.at(0);
    for (const Member& member : regroup.membership.members) {
      Step(
          FromReplica{member.replica, ReplicaRegrouped{regroup.membership.generation, 0, pause_s}});
    }
    EXPECT_EQ(trial(1).resizes.size(), 1u);
    EXPECT_TRUE(trial(2).resizes.empty());
    ReplicaProgress progress;
    progress.step = 10;
    progress.global_batch_size = 64;
    progress.noise = {1, 1};
    progress.profile.push_back({{1, 1, 64}, 10, 10.0, 10, 10.0, 0});
    Step(FromReplica{second, progress});
    Wait(3);
    Join("d", 16);
    return 1 + std::count_if(starts_.begin(), starts_.end(), [](const StartReplicaCommand& start) {
             return start.trial == TrialId(2);
           });
  }
};

// Tries go further where pauses are long: see PauseAwareGrowthCap.
TEST_F(ResizeCost, OfTheStudyIsTakenUntilATrialHasItsOwn) { EXPECT_GT(TriedAfterAPauseOf(36), 4); }

TEST_F(ResizeCost, OfTheStudyMayBeShort) { EXPECT_EQ(TriedAfterAPauseOf(0.1), 2); }

}  // namespace
}  // namespace espalier
