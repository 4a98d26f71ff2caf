#include "adapters/adaptdl/job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier::adaptdl {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

constexpr Time kEnd{1'700'000'000'000'000};

JobFacts Facts(TrialState trial, StudyState study = StudyState::kRunning) {
  return {.study = "cifar-1", .state = study, .trial = trial, .min_slots = 2};
}

TEST(JobStatus, SaysWhatAJobWaitsFor) {
  JobFacts facts = Facts(TrialState::kWaiting);
  JobStatus status = StatusOf(facts, {.slots = 1});
  EXPECT_EQ(status.phase, JobPhase::kPending);
  EXPECT_EQ(status.reason, "Waiting");
  EXPECT_EQ(status.message, "waits for 2 slots, the pool has 1");
  EXPECT_EQ(status.study, "cifar-1");
  EXPECT_EQ(status.attempt_count, 0);
  EXPECT_EQ(StatusOf(facts, {.slots = 0, .trouble = "pods are forbidden"}).message,
            "waits for 2 slots, the pool has 0: pods are forbidden");
  EXPECT_EQ(StatusOf(facts, {.slots = 4}).message, "waits for 2 slots of the pool's 4 to be free");
  facts.min_slots = 1;
  EXPECT_EQ(StatusOf(facts, {}).message, "waits for 1 slot, the pool has 0");
}

TEST(JobStatus, FollowsTheProcesses) {
  JobFacts facts = Facts(TrialState::kRunning);
  facts.started = true;
  facts.allocation = {"node-1", "node-1", "node-2"};
  EXPECT_EQ(StatusOf(facts, {}).phase, JobPhase::kStarting);
  facts.ready_replicas = 2;
  facts.restarts = 1;
  const JobStatus status = StatusOf(facts, {});
  EXPECT_EQ(status.phase, JobPhase::kRunning);
  EXPECT_THAT(status.allocation, ElementsAre("node-1", "node-1", "node-2"));
  EXPECT_EQ(status.ready_replicas, 2);
  EXPECT_EQ(status.group, 1);
  EXPECT_EQ(status.attempt_count, 2);
  EXPECT_EQ(status.message, "");
  facts.trial = TrialState::kPaused;
  EXPECT_EQ(StatusOf(facts, {}).phase, JobPhase::kStopping);
  facts.allocation.clear();
  EXPECT_EQ(StatusOf(facts, {}).phase, JobPhase::kPending);
}

TEST(JobStatus, OfOneThatHasEndedHoldsNothing) {
  JobFacts facts = Facts(TrialState::kComplete, StudyState::kComplete);
  facts.ended = kEnd;
  facts.allocation = {"node-1"};
  facts.ready_replicas = 1;
  JobStatus status = StatusOf(facts, {});
  EXPECT_EQ(status.phase, JobPhase::kSucceeded);
  EXPECT_EQ(status.completion_timestamp, "2023-11-14T22:13:20Z");
  EXPECT_THAT(status.allocation, ElementsAre());
  EXPECT_EQ(status.ready_replicas, 0);
  facts.trial = TrialState::kFail;
  facts.trial_reason = "exit code 3";
  status = StatusOf(facts, {});
  EXPECT_EQ(status.phase, JobPhase::kFailed);
  EXPECT_EQ(status.reason, "ProgramFailed");
  EXPECT_EQ(status.message, "exit code 3");
}

TEST(JobStatus, StopsBeforeItHasStopped) {
  JobFacts facts = Facts(TrialState::kPaused, StudyState::kStopped);
  facts.reason = "stopped by the user";
  facts.allocation = {"node-1"};
  facts.ended = kEnd;
  EXPECT_EQ(StatusOf(facts, {}).phase, JobPhase::kStopping);
  facts.allocation.clear();
  const JobStatus status = StatusOf(facts, {});
  EXPECT_EQ(status.phase, JobPhase::kFailed);
  EXPECT_EQ(status.reason, "Stopped");
  EXPECT_EQ(status.message, "stopped by the user");
  EXPECT_EQ(status.completion_timestamp, "2023-11-14T22:13:20Z");
}

TEST(JobStatus, CutsLongMessagesBetweenCharacters) {
  const std::string message =
      FailedStatus("Invalid", std::string(1023, 'a') + "\u00e9\u00e9", {}).message;
  EXPECT_EQ(message, std::string(1023, 'a') + "...");
  EXPECT_THAT(FailedStatus("Invalid", std::string(1024, 'a'), {}).message, EndsWith("aaa"));
}

}  // namespace
}  // namespace espalier::adaptdl
