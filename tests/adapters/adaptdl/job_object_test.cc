#include "adapters/adaptdl/job_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/study_file/adaptdl_job.h"

namespace espalier::adaptdl {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kList[] = R"({
  "kind": "AdaptDLJobList", "metadata": {"resourceVersion": "9", "continue": "more"},
  "items": [{
    "metadata": {"name": "cifar", "namespace": "lab", "uid": "u-1", "resourceVersion": "7", "generation": 3,
                 "deletionTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"minReplicas": 2, "maxReplicas": 8, "template": {"spec": {"containers": [
      {"name": "main", "command": ["sh", "-c", "echo \"é \\ \t: # {}\" \u0001"]}]}}},
    "status": {"phase": "Running", "reason": "Edited", "message": "m", "replicas": 2, "readyReplicas": 1,
               "allocation": ["node-1", "node-2"], "group": 1, "attemptCount": 2, "study": "cifar-u-1",
               "observedGeneration": 2, "train": {"gradParams": {}}}}]})";

TEST(JobObject, IsReadFromAList) {
  const absl::StatusOr<JobPage> page = ReadJobs(kList);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->next, "more");
  ASSERT_EQ(page->jobs.size(), 1U);
  const JobObject& job = page->jobs.front();
  EXPECT_EQ(job.name, "cifar");
  EXPECT_EQ(job.uid, "u-1");
  EXPECT_EQ(job.version, "7");
  EXPECT_EQ(job.generation, 3);
  EXPECT_TRUE(job.deleted);
  EXPECT_EQ(job.status, (JobStatus{.phase = JobPhase::kRunning,
                                   .reason = "Edited",
                                   .message = "m",
                                   .allocation = {"node-1", "node-2"},
                                   .ready_replicas = 1,
                                   .group = 1,
                                   .attempt_count = 2,
                                   .study = "cifar-u-1",
                                   .observed_generation = 2}));
}

TEST(JobObject, HasTheJobToTheLetter) {
  const auto job = ReadAdaptDLJob(ReadJobs(kList)->jobs.front().job, "cifar");
  ASSERT_TRUE(job.ok()) << job.status();
  const Json study = Json::parse(job->study_json);
  EXPECT_EQ(study["slots"], (Json{{"min", 2}, {"max", 8}}));
  // Its own braces name no parameter.
  EXPECT_EQ(study["command"], (Json{"sh", "-c", "echo \"é \\ \t: # {{}}\" \x01"}));
}

TEST(JobObject, OthersMayHaveWrittenWhatTheyLikeIntoTheStatus) {
  const auto page = ReadJobs(
      R"({"items": [{"metadata": {"name": "a", "uid": "u"},
                     "status": {"phase": "Odd", "allocation": [1], "group": "x", "message": {}}},
                    {"metadata": {"name": "b", "uid": "v"}, "status": "none"}]})");
  ASSERT_TRUE(page.ok()) << page.status();
  for (const JobObject& job : page->jobs) EXPECT_EQ(job.status, JobStatus{});
}

TEST(JobObject, WhatIsNoListIsRefused) {
  for (const char* bad : {"", "[]", "{}", R"({"items": {}})", R"({"items": [{"metadata": {}}]})"}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadJobs(bad).status())) << bad;
  }
}

TEST(JobObject, ItsStatusIsPatchedAsItWasSeen) {
  const JobObject job = ReadJobs(kList)->jobs.front();
  const Json patch = Json::parse(StatusPatch(job, job.status));
  EXPECT_EQ(patch["metadata"], (Json{{"resourceVersion", "7"}}));
  Json status = Json::parse(kList)["items"][0]["status"];
  const Json before = status;
  status.merge_patch(patch["status"]);
  EXPECT_EQ(status, before) << "the same status changes nothing, nor what others have written";
  status.merge_patch(Json::parse(StatusPatch(
      job,
      {.phase = JobPhase::kFailed, .message = "bad \xff", .observed_generation = 3}))["status"]);
  EXPECT_EQ(
      status,
      Json::parse(R"({"phase": "Failed", "message": "bad \ufffd", "group": 0, "attemptCount": 0,
                                    "observedGeneration": 3, "train": {"gradParams": {}}})"));
}

}  // namespace
}  // namespace espalier::adaptdl
