#include "absl/strings/str_cat.h"
#include "base/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/api/direct_tuner.h"
#include "tuner/api/operations.h"
#include "tuner/api/trial_output.h"

namespace espalier {
namespace {

using testing::HasSubstr;

class TrialOutput : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(api::CreateStudy(tuner_, CreateRequest()).ok()); }

  // A node with both trials of the study; the first is number 0.
  NodeId Join() {
    const Reply reply = tuner_.Post(AgentHello{"oak", 2, {}});
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    return tuner_.core.state().nodes.begin()->first;
  }
  absl::StatusOr<v1::TrialOutput> Output(std::int64_t max_bytes = 0, int rank = 0) {
    v1::TrialOutputRequest request;
    const auto& trials = tuner_.core.state().trials;
    request.set_trial_id(trials.empty() ? 1 : trials.begin()->first.value);
    request.set_max_bytes(max_bytes);
    request.set_rank(rank);
    return api::GetTrialOutput(tuner_, request);
  }
  std::string Refusal() { return std::string(Output().status().message()); }

  DirectTuner tuner_;
};

TEST_F(TrialOutput, IsWhatTheAgentHas) {
  tuner_.output[Join()] = "hello\xff";
  EXPECT_EQ(Output()->text(), "mnist/0: hello\xff");
  EXPECT_EQ(Output(3)->text(), "lo\xff");
}

TEST_F(TrialOutput, IsOfTheRankThatIsAskedFor) {
  tuner_.output[Join()] = "hello";
  EXPECT_EQ(Output(0, 3)->text(), "mnist/0, rank 3: hello");
  EXPECT_THAT(std::string(Output(0, -1).status().message()),
              HasSubstr("rank -1: needs the number of a rank, from 0"));
}

TEST_F(TrialOutput, WhereItIsIsSaidIfNobodyCanBeAsked) {
  EXPECT_TRUE(absl::IsNotFound(Output().status())) << "no such trial";
  Join();
  EXPECT_TRUE(absl::IsNotFound(Output().status()));
  EXPECT_THAT(Refusal(), HasSubstr("trial 0 is on node oak (no agent is connected)"));
  tuner_.folders["oak"] = "/var/espalier";
  EXPECT_THAT(Refusal(), HasSubstr("on node oak, below /var/espalier (no agent"));
}

TEST_F(TrialOutput, GrowsAtItsEndWhereOneReplicaPrintsAtATime) {
  for (const bool launched : {false, true}) {
    for (const int slots : {1, 2}) {
      DirectTuner tuner;
      const std::string launch = launched ? R"(, "launch": "ranks")" : "";
      const std::string json = absl::StrCat(R"({"name": "s", "command": ["/bin/true"],
          "metric": {"name": "loss", "direction": "minimize"}, "trials": 1, "slots": )",
                                            slots, launch, R"(, "search_space":
          {"lr": {"_type": "uniform", "_value": [0, 1]}}})");
      const auto created = api::CreateStudy(tuner, CreateRequest(json));
      ASSERT_TRUE(created.ok()) << created.status();
      tuner.Post(AgentHello{"oak", 2, {}});
      tuner.output[tuner.core.state().nodes.begin()->first] = "hello";
      v1::TrialOutputRequest request;
      request.set_trial_id(tuner.core.state().trials.begin()->first.value);
      const auto read = api::ReadTrialOutput(tuner, request);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->grows_at_its_end, slots == 1 || launched) << json;
    }
  }
}

TEST_F(TrialOutput, BoundsAndTrialsOfClientsAreRefused) {
  Join();
  EXPECT_THAT(std::string(Output(-1).status().message()), HasSubstr("max_bytes -1: needs 1 to"));
  EXPECT_THAT(std::string(Output(kMaxTrialOutput_bytes + 1).status().message()),
              HasSubstr("max_bytes"));
  DirectTuner clients;
  ASSERT_TRUE(api::CreateStudy(clients, CreateRequest(R"({"name": "asked", "ask_and_tell": true,
      "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}}})"))
                  .ok());
  const Reply reply = clients.Post(AskTrial{"asked", {}, ""});
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  v1::TrialOutputRequest request;
  request.set_trial_id(reply.trial().value);
  const auto refused = api::GetTrialOutput(clients, request);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("run by its client"));
}

}  // namespace
}  // namespace espalier
