#include "trial_runner/agent/agent_home.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process_start.h"
#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using AgentHomeTest = AgentTest;

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

TEST_F(AgentHomeTest, IsTakenByOneAgentOfANode) {
  StartAgent();
  const auto second = Agent::Start(Options());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("an agent named \"node-a\" runs in the directory " + Path("agent") +
                        " already (process " + std::to_string(getpid()) + "): end it first"));
  AgentOptions other = Options();
  other.node_name = "node-b";
  EXPECT_TRUE(Agent::Start(other).ok());
  agent_.reset();
  EXPECT_TRUE(Agent::Start(Options()).ok());
}

TEST_F(AgentHomeTest, RecordsWhoRuns) {
  const std::string folder = AgentHomeFolder(Path("agent"), "node-a");
  EXPECT_EQ(ReadAgentRecord(folder).status().code(), absl::StatusCode::kNotFound);
  StartAgent();
  const absl::StatusOr<AgentRecord> record = ReadAgentRecord(folder);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->pid, getpid());
  EXPECT_EQ(record->start, ProcessStart(getpid()));
  EXPECT_THAT(record->marks, SizeIs(1));
  agent_.reset();
  EXPECT_THAT(ReadAgentRecord(folder)->marks, IsEmpty());
}

TEST_F(AgentHomeTest, ANodesNameLeadsNowhereElse) {
  EXPECT_EQ(AgentHomeFolder("/d", "../../etc"), "/d/.agent/%2E.%2F..%2Fetc");
}

TEST_F(AgentHomeTest, WhatAnAgentWritesIsForItsUserAlone) {
  const mode_t former = umask(0);
  StartAgent();
  service_.Start(Shell(1, "echo out"));
  service_.AwaitExit(1);
  umask(former);
  for (const char* folder : {"agent", "agent/.agent/node-a", "agent/mnist", "agent/mnist/trial-2",
                             "agent/mnist/trial-2/checkpoints"}) {
    EXPECT_EQ(ModeOf(Path(folder)), 0700U) << folder;
  }
  for (const char* file :
       {"agent/.agent/node-a/lock", "agent/.agent/node-a/run",
        "agent/mnist/trial-2/parameters.json", "agent/mnist/trial-2/replica-1.log"}) {
    EXPECT_EQ(ModeOf(Path(file)), 0600U) << file;
  }
}

}  // namespace
}  // namespace espalier
