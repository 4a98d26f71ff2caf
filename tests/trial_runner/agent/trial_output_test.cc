#include "trial_runner/agent/trial_output.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/storage/scratch_folder.h"

namespace espalier {
namespace {

class TrialOutputTest : public testing::Test {
 protected:
  void Log(const std::string& name, const std::string& text) {
    std::ofstream(folder_.File(name)) << text;
  }
  std::string Output(std::size_t most = 1000) { return TrialOutput(folder_.path(), most); }

  ScratchFolder folder_;
};

TEST_F(TrialOutputTest, OneReplicasOutputIsAsItIs) {
  Log("replica-7.log", "one\ntwo");
  EXPECT_EQ(Output(), "one\ntwo");
  EXPECT_EQ(Output(3), "two");
}

TEST_F(TrialOutputTest, SeveralStandInTheOrderOfTheirStart) {
  Log("replica-10.log", "later\n");
  Log("replica-9.log", "earlier");
  EXPECT_EQ(Output(), "==> replica 9 <==\nearlier\n==> replica 10 <==\nlater\n");
  EXPECT_EQ(Output(6), "later\n") << "the newest is what there is room for";
}

TEST_F(TrialOutputTest, EachRankHasItsOwn) {
  Log("replica-7.log", "zero\n");
  Log("replica-7.rank-1.log", "one\n");
  Log("replica-7.rank-11.log", "eleven\n");
  Log("replica-7.launcher.log", "no");
  Log("replica-9.rank-1.log", "one again\n");
  EXPECT_EQ(Output(), "zero\n");
  EXPECT_EQ(TrialOutput(folder_.path(), 1000, 1),
            "==> replica 7 <==\none\n==> replica 9 <==\none again\n");
  EXPECT_EQ(TrialOutput(folder_.path(), 1000, 11), "eleven\n");
  EXPECT_EQ(TrialOutput(folder_.path(), 1000, 2), "");
}

TEST_F(TrialOutputTest, NothingElseIsRead) {
  Log("replica-1.log.bak", "no");
  Log("replica-x.log", "no");
  Log("replica-.log", "no");
  Log("parameters.json", "no");
  const ScratchFolder elsewhere;
  std::ofstream(elsewhere.File("secret")) << "no";
  std::filesystem::create_symlink(elsewhere.File("secret"), folder_.File("replica-2.log"));
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(TrialOutput(folder_.File("absent"), 10), "");
}

}  // namespace
}  // namespace espalier
