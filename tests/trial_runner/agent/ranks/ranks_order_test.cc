#include "trial_runner/agent/ranks/ranks_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

std::optional<RanksOrder> ReadWords(const std::vector<std::string>& words) {
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return RanksOrder::From(static_cast<int>(argv.size()), argv.data());
}

TEST(RanksOrder, IsReadAsItWasWritten) {
  const RanksOrder order{.launch = {"accelerate", "--mixed_precision=bf16"},
                         .ranks_of_nodes = {3, 2},
                         .node_rank = 1,
                         .grace_s = 2.5,
                         .apart_s = 600,
                         .ports = {7100, 7163},
                         .replica_log = "/t/replica-7.log",
                         .command = {"python3", "train.py", ""}};
  const std::optional<RanksOrder> read = ReadWords(order.Words("tuner"));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->kind, FindLaunchKind("accelerate"));
  EXPECT_EQ(read->launch, order.launch);
  EXPECT_THAT(read->ranks_of_nodes, testing::ElementsAre(3, 2));
  EXPECT_EQ(read->node_rank, 1);
  EXPECT_EQ(read->grace_s, 2.5);
  EXPECT_EQ(read->apart_s, 600);
  EXPECT_EQ(read->ports, order.ports);
  EXPECT_EQ(read->replica_log, order.replica_log);
  EXPECT_EQ(read->command, order.command);
}

TEST(RanksOrder, AnyPortIsNoRange) {
  RanksOrder order;
  order.launch = {"ranks"};
  order.command = {"./train"};
  const std::optional<RanksOrder> read = ReadWords(order.Words("tuner"));
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->ports.any());
}

TEST(RanksOrder, OtherCommandLinesAreNone) {
  EXPECT_FALSE(ReadWords({"tuner"}));
  EXPECT_FALSE(ReadWords({"tuner", "ls"}));
  RanksOrder order;
  order.launch = {"ranks"};
  EXPECT_FALSE(ReadWords(order.Words("tuner"))) << "there is no command";
  order.command = {"./train"};
  std::vector<std::string> words = order.Words("tuner");
  ASSERT_TRUE(ReadWords(words));
  words[7] = "5";
  EXPECT_FALSE(ReadWords(words)) << "more words than there are";
  for (const char* const nodes : {"2,2@2", "2,0@1", "2,@0", "@0", "2", "2@-1"}) {
    std::vector<std::string> other = order.Words("tuner");
    other[2] = nodes;
    EXPECT_FALSE(ReadWords(other)) << nodes;
  }
  words[7] = "1";
  words[2] = "0";
  EXPECT_FALSE(ReadWords(words));
  order.launch = {"mpirun"};
  EXPECT_FALSE(ReadWords(order.Words("tuner")));
}

}  // namespace
}  // namespace espalier
