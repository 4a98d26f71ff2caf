// Checkpoints in a folder that several nodes see.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/checkpoints/checkpoints_fixture.h"
#include "tuner/core/checkpoints/checkpoint_keeping.h"

namespace espalier {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SharedFolderTest : public CheckpointsTest {
 protected:
  // An elastic trial on one slot of node a, with a checkpoint in the folder.
  void TrainAndSave() {
    StudySpec spec = Spec(1);
    spec.max_slots = 1;
    Step(CreateStudy{spec, false});
    a_ = Enter("a", 1, {}, "mark");
    replica_ = Ready(starts_.at(0).replica);
    Form(regroups_);
    Save(10);
  }
};

TEST_F(SharedFolderTest, WhatLiesInASharedFolderEveryNodeHas) {
  StudySpec spec = Spec(1);
  spec.max_slots = 1;
  Step(CreateStudy{spec, false});
  a_ = Enter("a", 1, {}, "mark");
  replica_ = Ready(starts_.at(0).replica);
  Form(regroups_);
  b_ = Enter("b", 1, {}, "mark");
  Save(10);
  EXPECT_TRUE(copies_.empty());
  Lose(a_);
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_THAT(starts_[0].sources, ElementsAre(b_));
}

TEST_F(SharedFolderTest, AFolderThatIsNotSharedIsRefused) {
  Enter("a", 1, {}, "mark");
  Enter("b", 1, {}, "another");
  EXPECT_EQ(status_.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status_.message()),
              HasSubstr("the --shared-dir of node b is not the folder of node a"));
  EXPECT_EQ(core_.Nodes().size(), 1u);
  Enter("c", 1, {}, "mark");
  EXPECT_TRUE(status_.ok()) << status_;
  Enter("d", 1);
  EXPECT_TRUE(status_.ok()) << "one with a disk of its own fetches from the others";
}

TEST_F(SharedFolderTest, WhatLiesThereIsNotGoneWithTheLastNodeThatSawIt) {
  TrainAndSave();
  Enter("other", 1);  // of another folder, so that time counts
  Lose(a_);
  Wait(11);
  EXPECT_FALSE(Ended(trial().state)) << trial().reason;
  EXPECT_THAT(Reasons(),
              Contains(HasSubstr("waits for a node that sees the --shared-dir of node a, where its "
                                 "checkpoint step-10.pt lies")));
  const NodeId late = Enter("late", 1, {}, "mark");
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_THAT(starts_[0].sources, ElementsAre(late));
  EXPECT_EQ(starts_[0].from.step, 10);
}

TEST_F(SharedFolderTest, AFolderThatNobodyComesBackToIsGivenUp) {
  TrainAndSave();
  Enter("other", 1);
  Lose(a_);
  Wait(11);
  Wait(kHolderPatience_s);
  EXPECT_EQ(trial().state, TrialState::kFail);
  EXPECT_THAT(trial().reason, HasSubstr("was lost with node a, and no other node has one"));
}

TEST_F(SharedFolderTest, TimeWithoutASingleNodeDoesNotCount) {
  TrainAndSave();
  Lose(a_);
  Wait(11);
  Wait(10 * kHolderPatience_s);  // a network that is away for hours
  EXPECT_FALSE(Ended(trial().state)) << trial().reason;
  EXPECT_THAT(Reasons(), Not(Contains(HasSubstr("waits for"))));
  Enter("other", 1);
  Wait(kHolderPatience_s);
  EXPECT_FALSE(Ended(trial().state)) << "its time has begun with that node: " << trial().reason;
  Enter("late", 1, {}, "mark");
  ASSERT_EQ(starts_.size(), 1u);
  EXPECT_EQ(starts_[0].from.step, 10);
}

}  // namespace
}  // namespace espalier
