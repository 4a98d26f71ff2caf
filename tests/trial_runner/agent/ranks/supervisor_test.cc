#include "trial_runner/agent/ranks/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace espalier {
namespace {

using testing::HasSubstr;

class SuperviseRanksTest : public testing::Test {
 protected:
  SuperviseRanksTest() {
    replica_.command = {"/bin/sh", "train.sh"};
    replica_.log_path = "/t/replica-7.log";
    start_.add_more_slots(1);
  }
  v1::Launch& launch() { return *start_.mutable_launch(); }
  absl::Status Supervise() { return SuperviseRanks(start_, {}, replica_); }

  v1::StartReplica start_;
  LaunchOrder replica_;
};

TEST_F(SuperviseRanksTest, ACommandWithoutALaunchStaysAsItIs) {
  const std::vector<std::string> before = replica_.command;
  ASSERT_TRUE(Supervise().ok());
  EXPECT_EQ(replica_.command, before);
}

TEST_F(SuperviseRanksTest, ASupervisorTakesItsPlace) {
  launch().add_words("ranks");
  launch().set_least(2);
  ASSERT_TRUE(Supervise().ok());
  EXPECT_TRUE(std::filesystem::equivalent(replica_.command.front(), "/proc/self/exe"));
  EXPECT_EQ(replica_.command.back(), "train.sh");
}

TEST_F(SuperviseRanksTest, WhatItStartsMayBeForkedWhereTheStudyNamesModules) {
  launch().add_words("ranks");
  const std::vector<std::string> ranks = replica_.command;
  LaunchOrder without = replica_;
  ASSERT_TRUE(SuperviseRanks(start_, {}, without).ok());
  EXPECT_TRUE(without.rank_command.empty());
  start_.add_preload("torch");
  ASSERT_TRUE(Supervise().ok());
  EXPECT_EQ(replica_.rank_command, ranks);
}

TEST_F(SuperviseRanksTest, WhatIsNotThereIsNamedBeforeAnyRankStarts) {
  launch().add_words("ranks");
  replica_.command = {"no-such-program"};
  EXPECT_THAT(std::string(Supervise().message()),
              HasSubstr("cannot start no-such-program: not found"));
}

TEST_F(SuperviseRanksTest, RanksThatAreNotAllHereAreRefused) {
  launch().add_words("ranks");
  launch().set_least(3);
  EXPECT_THAT(std::string(Supervise().message()),
              HasSubstr("its 3 ranks are to be on one machine, and 2 of its slots are here"));
  start_.clear_more_slots();
  EXPECT_THAT(std::string(Supervise().message()), HasSubstr("and 1 of its slots is here: lower"));
}

}  // namespace
}  // namespace espalier
