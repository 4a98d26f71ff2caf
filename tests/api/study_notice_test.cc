#include "tuner/api/study_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api/direct_tuner.h"
#include "tuner/api/operations.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

// A study whose trials need two slots each.
class StudyNoticeTest : public testing::Test {
 protected:
  StudyNoticeTest() {
    std::string text = kStudyJson;
    text.replace(text.rfind('}'), 1, R"(, "slots": 2})");
    made_ = api::CreateStudy(tuner_, CreateRequest(text));
  }
  void Join(const std::string& name, int slots) {
    ASSERT_TRUE(tuner_.Post(AgentHello{name, slots, {}}).status.ok());
  }
  void Tell(double value, bool final) {
    v1::TellRequest request;
    request.set_trial_id(1);
    request.set_value(value);
    request.set_final(final);
    ASSERT_TRUE(api::Tell(tuner_, request).ok());
  }
  absl::Status Pin(int slots) {
    v1::PinTrialRequest request;
    request.set_study("mnist");
    request.set_slots(slots);
    return api::PinTrial(tuner_, request).status();
  }
  std::string Notice() {
    return StudyNotice(tuner_.core.state().studies.begin()->second, tuner_.view());
  }

  DirectTuner tuner_;
  absl::StatusOr<v1::Study> made_;
};

TEST_F(StudyNoticeTest, SaysThatThePoolHasNoMachineAndThenThatItHasTooFewSlots) {
  ASSERT_TRUE(made_.ok()) << made_.status();
  EXPECT_EQ(made_->notice(),
            "no machine is in the pool: have one join it by tuner agent --join HOST:PORT, as the "
            "service prints it when it starts");
  Join("oak", 1);
  EXPECT_EQ(Notice(),
            "each trial needs 2 slots, and the pool has 1: have more machines join it, "
            "or lower \"slots\" of the study");
  Join("elm", 1);
  EXPECT_EQ(Notice(), "");
}

TEST_F(StudyNoticeTest, IsSilentWhereAnEngineStartsMachines) {
  tuner_.users_add_machines = false;
  EXPECT_EQ(Notice(), "");
}

TEST_F(StudyNoticeTest, SaysThatAProgramWhichIsNotElasticLeavesSlotsIdle) {
  Join("oak", 2);
  EXPECT_TRUE(Pin(2).ok()) << "its program may yet be elastic";
  Tell(0.5, false);
  EXPECT_THAT(Notice(), HasSubstr("not elastic: each trial is one process on 1 slot"));
  EXPECT_EQ(std::string(Pin(2).message()),
            "trial 0 runs a program that is not elastic: it holds 1 slot and cannot be resized");
  EXPECT_TRUE(Pin(0).ok());
  Tell(0.4, true);
  EXPECT_THAT(Notice(), HasSubstr("not elastic")) << "that holds for the next ones too";
}

TEST_F(StudyNoticeTest, SaysNothingOfAnElasticProgram) {
  Join("oak", 2);
  // Once the first is ready, the second is started.
  for (std::size_t i = 0; i < tuner_.commands.size(); ++i) {
    const auto* start = std::get_if<StartReplicaCommand>(&tuner_.commands[i]);
    if (start == nullptr) continue;
    const ReplicaId replica = start->replica;
    tuner_.Post(FromReplica{replica, ReplicaReady{"host:1", {64, 64, 1, 64, true}, 10}});
  }
  ASSERT_EQ(tuner_.core.state().trials.at(TrialId(1)).generation, 1);
  Tell(0.5, false);
  EXPECT_EQ(Notice(), "");
}

}  // namespace
}  // namespace espalier
