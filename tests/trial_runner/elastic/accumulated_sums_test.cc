#include "trial_runner/elastic/accumulated_sums.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

AccumulatedSums Made() {
  AccumulatedSums sums;
  EXPECT_EQ(*sums.Declare("train", {"loss", "correct"}), 0u);
  EXPECT_EQ(*sums.Declare("test", {"loss"}), 2u);
  return sums;
}

// As a group's all-reduce would.
void MergeAll(const std::vector<AccumulatedSums*>& members) {
  std::vector<double> totals(members.front()->own().size());
  for (const AccumulatedSums* member : members) {
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += member->own()[i];
  }
  for (AccumulatedSums* member : members) member->Merge(totals);
}

TEST(AccumulatedSums, SumsOverMembersAndStartsAgain) {
  AccumulatedSums a = Made();
  AccumulatedSums b = Made();
  a.Add(0, 1);
  b.Add(0, 2);
  b.Add(2, 5);
  MergeAll({&a, &b});
  a.Add(0, 10);
  MergeAll({&a, &b});
  EXPECT_THAT(a.Take(0, 2), ElementsAre(13, 0));
  EXPECT_THAT(b.Take(0, 2), ElementsAre(13, 0));
  EXPECT_THAT(b.Take(0, 2), ElementsAre(0, 0));
  EXPECT_THAT(b.Take(2, 1), ElementsAre(5));
}

TEST(AccumulatedSums, WhatADroppedStepAddedIsAddedAgain) {
  AccumulatedSums sums = Made();
  sums.BeginMicrobatch();
  sums.Add(0, 1);
  sums.DropStep();
  sums.Add(0, 2);  // after Step, of the same microbatch
  sums.BeginMicrobatch();
  sums.Add(0, 3);
  sums.CountStep();
  sums.Add(0, 4);
  EXPECT_THAT(sums.own(), ElementsAre(7, 0, 0));
  sums.DropStep();  // there was none: the group was lost in an evaluation
  sums.Add(0, 5);
  EXPECT_THAT(sums.own(), ElementsAre(12, 0, 0));
}

TEST(AccumulatedSums, LeaversSumsStayAndJoinersBringNone) {
  AccumulatedSums stays = Made();
  AccumulatedSums leaves = Made();
  stays.Add(0, 1);
  leaves.Add(0, 2);
  MergeAll({&stays, &leaves});
  AccumulatedSums joins = Made();
  ASSERT_TRUE(joins.Adopt(stays.Encode()).ok());
  joins.Add(0, 4);
  MergeAll({&stays, &joins});
  EXPECT_THAT(joins.Take(0, 1), ElementsAre(7));
  EXPECT_EQ(joins.merges(), stays.merges());
}

TEST(AccumulatedSums, MemberThatMissedTheEndOfAMergeCountsOnce) {
  AccumulatedSums ahead = Made();
  AccumulatedSums behind = Made();
  ahead.Add(0, 1);
  behind.Add(0, 2);
  ahead.Merge(std::vector<double>{3, 0, 0});
  ASSERT_TRUE(behind.Adopt(ahead.Encode()).ok());
  MergeAll({&ahead, &behind});
  EXPECT_THAT(behind.Take(0, 1), ElementsAre(3));
  // One that is behind by a step and not by a merge keeps its own.
  behind.Add(0, 8);
  ASSERT_TRUE(behind.Adopt(behind.Encode()).ok());
  EXPECT_THAT(behind.own(), ElementsAre(8, 0, 0));
}

TEST(AccumulatedSums, CheckpointBringsBackTheSharedAndDropsTheRest) {
  AccumulatedSums sums = Made();
  sums.Merge(std::vector<double>{0.1, std::numeric_limits<double>::infinity(), -3});
  const std::string text = sums.Encode();
  sums.Add(0, 100);
  ASSERT_TRUE(sums.Restore(text).ok());
  EXPECT_THAT(sums.own(), ElementsAre(0, 0, 0));
  EXPECT_THAT(sums.Take(0, 3), ElementsAre(0.1, std::numeric_limits<double>::infinity(), -3));
}

TEST(AccumulatedSums, ForgetsWhatHadBeenCounted) {
  AccumulatedSums sums = Made();
  for (const std::size_t i : {0u, 1u, 2u}) sums.Add(i, 1);
  sums.Forget(0, 2);
  EXPECT_THAT(sums.own(), ElementsAre(0, 0, 1));
}

TEST(AccumulatedSums, BadNamesAndOtherProgramsAreRefusedByName) {
  AccumulatedSums sums = Made();
  const auto error = [&](const std::string& name, const std::vector<std::string>& of) {
    return std::string(sums.Declare(name, of).status().message());
  };
  EXPECT_THAT(error("train", {"x"}), HasSubstr("already an accumulator named \"train\""));
  EXPECT_THAT(error("a b", {"x"}), HasSubstr("\"a b\" is no name"));
  EXPECT_THAT(error("more", {}), HasSubstr("at least one sum"));
  EXPECT_THAT(error("more", {"x", "x"}), HasSubstr("\"x\" is named twice"));
  AccumulatedSums other;
  ASSERT_TRUE(other.Declare("train", {"loss", "right"}).ok());
  EXPECT_THAT(std::string(other.Adopt(Made().Encode()).message()),
              HasSubstr("\"train right\" here, \"train correct\" there"));
  EXPECT_THAT(std::string(AccumulatedSums().Adopt(Made().Encode()).message()),
              HasSubstr("\"\" here, \"train loss\" there"));
  EXPECT_THAT(std::string(Made().Adopt("1 3 train").message()), HasSubstr("damaged"));
}

}  // namespace
}  // namespace espalier
