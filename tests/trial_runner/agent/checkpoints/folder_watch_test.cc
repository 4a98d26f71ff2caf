#include "trial_runner/agent/checkpoints/folder_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class FolderWatchTest : public ::testing::Test {
 protected:
  FolderWatchTest() { fs::create_directories(folder_); }
  ~FolderWatchTest() override { fs::remove_all(folder_); }

  void Begin(std::int64_t step = 0, const std::string& fingerprint = "") {
    v1::StartReplica start;
    start.set_replica_id(3);
    if (step > 0) {
      start.mutable_from()->set_step(step);
      start.mutable_from()->set_fingerprint(fingerprint);
      start.set_checkpoint(folder_.string());
    }
    watch_.Add(start, folder_.string());
    now_ = *watch_.NextLook();
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::vector<std::pair<std::int64_t, v1::CheckpointSaved>> Look() {
    auto saved = watch_.Look(now_);
    now_ += kFolderLook;
    return saved;
  }

  fs::path folder_ = fs::temp_directory_path() / absl::StrCat("espalier-watch-", getpid());
  FolderWatch watch_;
  FolderWatch::Clock::time_point now_;
};

TEST_F(FolderWatchTest, WhatIsTheSameAtTwoLooksIsSaved) {
  Begin();
  EXPECT_TRUE(Look().empty()) << "an empty folder is none";
  Write("epoch", "1");
  EXPECT_TRUE(Look().empty()) << "it may still be written to";
  Write("weights", "half");
  EXPECT_TRUE(Look().empty());
  const auto saved = Look();
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].first, 3);
  EXPECT_EQ(saved[0].second.path(), folder_.string());
  EXPECT_EQ(saved[0].second.name(), "");
  EXPECT_FALSE(saved[0].second.fingerprint().empty());
  EXPECT_EQ(saved[0].second.step(), 1);
  EXPECT_TRUE(Look().empty()) << "once";
}

TEST_F(FolderWatchTest, CountsOnFromWhatItWasGiven) {
  Write("epoch", "1");
  Begin();
  const std::string given = watch_.LastLook(3)->fingerprint();
  Begin(8, given);
  Look();
  EXPECT_TRUE(Look().empty()) << "it has not changed";
  Write("epoch", "2");
  const auto last = watch_.LastLook(3);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->step(), 9);
  EXPECT_FALSE(watch_.LastLook(3)) << "it has ended";
}

TEST_F(FolderWatchTest, WhereOthersFetchNothingItsPathIsToldOnce) {
  FolderWatch watch(/*by_path=*/true);
  v1::StartReplica start;
  start.set_replica_id(3);
  watch.Add(start, folder_.string());
  now_ = *watch.NextLook();
  const auto look = [&] { return watch.Look(std::exchange(now_, now_ + kFolderLook)); };
  Write("epoch", "1");
  EXPECT_TRUE(look().empty());
  const auto saved = look();
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].second.path(), folder_.string() + "/");
  EXPECT_EQ(saved[0].second.fingerprint(), "");
  Write("epoch", "12");
  EXPECT_TRUE(look().empty());
  EXPECT_TRUE(look().empty());
}

TEST_F(FolderWatchTest, ProgramsOfOursSpeakForThemselves) {
  Write("step-7.pt", "learnt");
  Begin();
  EXPECT_TRUE(Look().empty());
  EXPECT_TRUE(Look().empty());
  EXPECT_FALSE(watch_.LastLook(3));
}

// An agent that does not call its service by gRPC keeps no checkpoints for others.
#ifndef ESPALIER_CALLS_IN_PROCESS

TEST_F(AgentTest, TheFolderOfAScriptIsACheckpointWhenItHasEnded) {
  StartAgent();
  service_.Start(Shell(1, "echo 12 > $ESPALIER_CHECKPOINT_DIR/epoch; exit 3"));
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 3);
  ASSERT_TRUE(AwaitMessage(1));
  for (const v1::AgentMessage& event : service_.events()) {
    if (!event.has_from_replica()) continue;
    const v1::CheckpointSaved& saved = event.from_replica().message().checkpoint();
    EXPECT_EQ(saved.path(), Path("agent") + "/mnist/trial-2/checkpoints");
    EXPECT_FALSE(saved.fingerprint().empty());
  }
}

#endif

}  // namespace
}  // namespace espalier
