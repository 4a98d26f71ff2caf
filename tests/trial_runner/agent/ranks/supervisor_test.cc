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

TEST_F(SuperviseRanksTest, RanksOnSeveralNodesKnowTheirNumbers) {
  launch().add_words("torchrun");
  launch().set_least(5);
  for (const int ranks : {3, 2}) launch().add_ranks_of_nodes(ranks);
  launch().set_node_rank(1);
  const RankPlace place = RanksHere(start_);
  EXPECT_EQ(place.first(), 3);
  EXPECT_EQ(place.here(), 2);
  ASSERT_TRUE(Supervise().ok());
  EXPECT_EQ(replica_.command[2], "3,2@1");
  launch().set_words(0, "nodes");
  EXPECT_EQ(RanksHere(start_).first(), 1) << "one process a node";
  EXPECT_EQ(RanksHere(start_).here(), 1);
}

TEST_F(SuperviseRanksTest, AShareOfAnotherSizeIsRefused) {
  launch().add_words("ranks");
  for (const int ranks : {3, 1}) launch().add_ranks_of_nodes(ranks);
  launch().set_node_rank(1);
  EXPECT_THAT(std::string(Supervise().message()), HasSubstr("as node 1 of 2 it cannot have 2"));
  launch().set_node_rank(2);
  EXPECT_THAT(std::string(Supervise().message()), HasSubstr("as node 2 of 2"));
}

TEST_F(SuperviseRanksTest, ALauncherOfANewerServiceIsNamed) {
  launch().add_words("mpirun");
  EXPECT_THAT(std::string(Supervise().message()),
              HasSubstr("\"mpirun\", is none that this agent knows: upgrade it"));
}

}  // namespace
}  // namespace espalier
