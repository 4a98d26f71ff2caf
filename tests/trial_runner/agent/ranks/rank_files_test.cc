#include "trial_runner/agent/ranks/rank_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

TEST(RankFiles, StandBesideTheReplicasLog) {
  EXPECT_EQ(RankLog("/t/replica-7.log", 0), "/t/replica-7.log") << "rank 0's is the replica's";
  EXPECT_EQ(RankLog("/t/replica-7.log", 12), "/t/replica-7.rank-12.log");
  EXPECT_EQ(RankErrorFile("/t/replica-7.log", 0), "/t/replica-7.rank-0.error.json");
  EXPECT_EQ(LauncherLog("/t/replica-7.log"), "/t/replica-7.launcher.log");
  EXPECT_EQ(LauncherConfigFile("/t/replica-7.log"), "/t/replica-7.launcher.json");
  EXPECT_EQ(LauncherFolder("/t/replica-7.log"), "/t/replica-7.launcher");
}

TEST(RankFiles, KeepWhoIsToBlame) {
  const ScratchFolder folder;
  const std::string log = folder.File("replica-7.log");
  EXPECT_EQ(ReadBlame(log), std::nullopt);
  const Blame blame{.rank = 1, .of = 2, .why = "it said \"no\"\n"};
  ASSERT_TRUE(WriteBlame(log, blame).ok());
  EXPECT_EQ(ReadBlame(log), blame);
}

TEST(RankFiles, WhatIsNoBlameIsNone) {
  const ScratchFolder folder;
  for (const char* const text :
       {"", "{", "[]", R"({"rank": 1})", R"({"rank": "1", "of": 2, "why": ""})",
        R"({"rank": 1, "of": 2, "why": 3})", R"({"rank": 1.5, "of": 2, "why": ""})"}) {
    std::ofstream(folder.File("replica-7.blame")) << text;
    EXPECT_EQ(ReadBlame(folder.File("replica-7.log")), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace espalier
