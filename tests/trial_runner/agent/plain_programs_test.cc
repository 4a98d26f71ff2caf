// What an agent does for programs that know nothing of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <filesystem>

#include "tests/trial_runner/agent/agent_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

class PlainPrograms : public AgentTest {
 protected:
  v1::StartReplica Printing(std::int64_t replica_id, const std::string& script) const {
    v1::StartReplica start = Shell(replica_id, script);
    start.mutable_output_metric()->set_pattern("loss=([0-9.]+)");
    return start;
  }

  // Waits until the replica has so many reports, and returns them.
  std::vector<v1::Report> AwaitReports(std::int64_t replica_id, std::size_t count) {
    std::vector<v1::Report> reports;
    EXPECT_TRUE(service_.Await([&](const ScriptedService::Events& events) {
      reports.clear();
      for (const v1::AgentMessage& event : events) {
        const v1::FromReplica& from = event.from_replica();
        if (from.replica_id() == replica_id && from.message().has_report()) {
          reports.push_back(from.message().report());
        }
      }
      return reports.size() >= count;
    }));
    return reports;
  }

  std::string Failure(std::int64_t replica_id) {
    std::string failure;
    for (const v1::AgentMessage& event : service_.events()) {
      const v1::FromReplica& from = event.from_replica();
      if (from.replica_id() == replica_id && from.message().has_finished()) {
        failure = from.message().finished().failure();
      }
    }
    return failure;
  }
};

// What a terminal or a session that ends sends to all of its processes is the agent's affair.
TEST_F(PlainPrograms, GoOnWhenTheyAreHungUp) {
  StartAgent();
  service_.Start(Shell(1, "kill -HUP $$; kill -HUP 0; exit 3"));
  service_.Start(Shell(2, "sh -c 'kill -HUP $$; exit 4'; exit $?"));
  EXPECT_EQ(service_.AwaitExit(1).exit_code(), 3);
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 4);
}

TEST_F(PlainPrograms, GetParametersInTheirCommand) {
  StartAgent();
  v1::StartReplica start = Shell(1, "printf '%s|' \"$@\"");
  start.set_seed(9);
  for (const char* word : {"sh", "--lr={lr}", "{rule} {{lr}} ${x}", "{seed}", "{trial_dir}"}) {
    start.add_command(word);
  }
  service_.Start(start);
  EXPECT_EQ(service_.AwaitExit(1).last_output(),
            "--lr=0.1|adascale {lr} ${x}|9|" + Path("agent/mnist/trial-2") + "|");
  start.set_replica_id(2);
  start.add_command("{lrr}");
  service_.Start(start);
  EXPECT_THAT(service_.AwaitExit(2).error(), HasSubstr("the trial has no parameter \"lrr\""));
}

TEST_F(PlainPrograms, ReportWhatTheyWriteIntoAFileWhileTheyRun) {
  StartAgent();
  v1::StartReplica start =
      Shell(1, "echo '{\"loss\": 0.5, \"step\": 7}' > \"$0/log-0.1.jsonl\"; exec sleep 1000");
  start.add_command("{trial_dir}");
  start.mutable_file_metric()->set_path("log-{lr}.jsonl");
  start.mutable_file_metric()->set_value("loss");
  service_.Start(start);
  const std::vector<v1::Report> reports = AwaitReports(1, 1);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].step(), 7);
  EXPECT_EQ(reports[0].value(), 0.5);
}

TEST_F(PlainPrograms, ReportWhatTheyPrintWhileTheyRun) {
  StartAgent();
  service_.Start(Printing(
      1, "echo loss=0.5; echo loss=0.25 >&2; printf loss=0.1; touch printed; exec sleep 1000"));
  while (!std::filesystem::exists(Path("printed"))) poll(nullptr, 0, 5);
  // And what has no end yet is no line.
  const std::vector<v1::Report> reports = AwaitReports(1, 2);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].step(), 1);
  EXPECT_EQ(reports[0].value(), 0.5);
  EXPECT_EQ(reports[1].step(), 2);
  EXPECT_EQ(reports[1].value(), 0.25);
  service_.Stop(1, 60);
  EXPECT_EQ(service_.AwaitExit(1).signal(), SIGTERM);
  EXPECT_EQ(AwaitReports(1, 3).back().value(), 0.1);
  EXPECT_EQ(ReadFile("agent/mnist/trial-2/replica-1.log"), "loss=0.5\nloss=0.25\nloss=0.1");
}

TEST_F(PlainPrograms, PrintAtOnceInPython) {
  StartAgent();
  v1::StartReplica start = Printing(1, "");
  start.clear_command();
  for (const char* word :
       {"python3", "-c", "import time\nprint('loss=0.5')\nwhile True: time.sleep(100)"}) {
    start.add_command(word);
  }
  service_.Start(start);
  EXPECT_EQ(AwaitReports(1, 1).front().value(), 0.5);
  service_.Stop(1, 0);
  service_.AwaitExit(1);
}

TEST_F(PlainPrograms, FailWhereNothingThatTheyPrintIsAValue) {
  StartAgent();
  service_.Start(Printing(1, "echo loss: 0.5"));
  service_.AwaitExit(1);
  EXPECT_THAT(Failure(1), HasSubstr("the nearest lines: \"loss: 0.5\""));
  // It says itself why it has failed.
  service_.Start(Printing(2, "echo loss: 0.5; exit 3"));
  EXPECT_EQ(service_.AwaitExit(2).exit_code(), 3);
  EXPECT_EQ(Failure(2), "");
  // It was not let to its end.
  service_.Start(Printing(3, "trap 'exit 0' TERM; echo loss: 0.5; while :; do sleep 0.01; done"));
  AwaitPid(3);
  service_.Stop(3, 60);
  service_.AwaitExit(3);
  EXPECT_EQ(Failure(3), "");
}

}  // namespace
}  // namespace espalier
