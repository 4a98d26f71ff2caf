#include "tuner/cli/views/plain_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/views/sample_study.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

TEST(EventLines, TellsEachDecisionWithItsReason) {
  EXPECT_THAT(
      EventLines(v1::StudyDetails(), SampleStudy()),
      ElementsAre(
          EndsWith(" trial 0 started on 1 slot: lr=0.01 batch_size=64 scaling_rule=adascale "
                   "(first free slot)"),
          EndsWith(" trial 1 started on 1 slot: lr=1 batch_size=64 scaling_rule=linear "
                   "(first free slot)"),
          EndsWith(" trial 1 pruned at step 2, best accuracy 0.1 (below the median)"),
          EndsWith(" trial 0 grew 1 -> 2 slots (most promising)"),
          EndsWith(" trial 2 failed (exit code 3)"), "    | loading", "    | out of <memory>",
          EndsWith(" trial 3 grew 1 -> 2 slots (most promising)")));
}

TEST(EventLines, TellsOnlyWhatIsNew) {
  const v1::StudyDetails after = SampleStudy();
  v1::StudyDetails before = after;
  EXPECT_THAT(EventLines(before, after), IsEmpty());
  before.mutable_decisions()->RemoveLast();
  EXPECT_THAT(EventLines(before, after), ElementsAre(EndsWith("trial 3 grew 1 -> 2 slots "
                                                              "(most promising)")));
}

TEST(EventLines, TellsANoticeOnce) {
  v1::StudyDetails before = SampleStudy();
  v1::StudyDetails after = before;
  after.mutable_study()->set_notice("no machine is in the pool");
  EXPECT_THAT(EventLines(before, after), ElementsAre("note: no machine is in the pool"));
  EXPECT_THAT(EventLines(after, after), IsEmpty());
  EXPECT_THAT(EventLines(after, before), IsEmpty());
}

TEST(EventLines, FindsItsPlaceWhenOldDecisionsWereDropped) {
  v1::StudyDetails before = SampleStudy();
  before.mutable_decisions()->RemoveLast();
  v1::StudyDetails after = SampleStudy();
  after.mutable_decisions()->DeleteSubrange(0, 4);
  EXPECT_EQ(EventLines(before, after).size(), 1u);
}

TEST(FailureLines, LeavesOutWhatWentWell) {
  EXPECT_THAT(FailureLines(v1::StudyDetails(), SampleStudy()),
              ElementsAre(EndsWith(" trial 2 failed (exit code 3)"), "    | loading",
                          "    | out of <memory>"));
}

TEST(StatusLine, SumsUpTheStudy) {
  EXPECT_EQ(StatusLine(SampleStudy()),
            "mnist after 20s: 3/10 trials done: 1 running, 1 waiting, 1 complete, 1 pruned, "
            "1 failed; slots 2/2; about 1m05s left; best (highest) accuracy 0.9123, trial 0: "
            "lr=0.01 batch_size=64 scaling_rule=adascale");
}

}  // namespace
}  // namespace espalier
