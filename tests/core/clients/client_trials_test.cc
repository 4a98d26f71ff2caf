#include "tuner/core/clients/client_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/parts_fixture.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

constexpr StudyId kClientStudy{1};

// A study whose clients run its trials, and are silent for 10 s at the most.
class ClientTrialsTest : public PartsFixture {
 protected:
  ClientTrialsTest() {
    observe_ = [this](const Change& change) { client_trials_.Observe(change); };
    options_.client_lease = {.seconds = 10, .max_retries = 1};
    StudySpec spec;
    spec.name = "by clients";
    spec.kind = StudyKind::kByClients;
    spec.target = 0.5;
    PartsFixture::Create(kClientStudy, spec);
  }

  TrialId Create(const std::string& request_key = "") {
    CreateTrial event{kClientStudy, nullptr};
    event.request_key = request_key;
    client_trials_.On(event);
    return turn_.Finish().reply.trial();
  }
  TrialState StateOf(TrialId id) { return turn_.TrialAt(id).state; }

  ClientTrials client_trials_{turn_, options_, plugins_, draws_, ranks_, trials_};
};

TEST_F(ClientTrialsTest, TheTrialOfASilentClientEndsAndIsQueuedAgain) {
  const TrialId silent = Create();
  turn_.Begin(After(turn_.now(), 6));
  const TrialId heard = Create();
  turn_.Begin(After(turn_.now(), 4));
  EXPECT_EQ(client_trials_.NextCheck(), TimeFromSeconds(102.5)) << "four times a lease";
  client_trials_.CheckLeases();
  EXPECT_EQ(StateOf(silent), TrialState::kFail);
  EXPECT_EQ(StateOf(heard), TrialState::kRunning);
  const TrialId again = turn_.state().last_trial;
  EXPECT_EQ(StateOf(again), TrialState::kWaiting);
  EXPECT_EQ(turn_.TrialAt(again).attributes.system.at("failed_trial"), "0");
}

TEST_F(ClientTrialsTest, OfADeletedStudyNothingIsKept) {
  Create("key");
  ASSERT_TRUE(client_trials_.NextCheck().has_value());
  turn_.Emit(StudyDeleted{kClientStudy, turn_.state().last_study, turn_.state().last_trial});
  EXPECT_EQ(client_trials_.NextCheck(), std::nullopt);
  ASSERT_TRUE(client_trials_.CheckRequestKey(kClientStudy, kCreationKey, "key").ok());
  EXPECT_FALSE(turn_.reply().existed());
}

TEST_F(ClientTrialsTest, ARequestThatIsRepeatedNamesTheTrialThatItMade) {
  const TrialId first = Create("key");
  EXPECT_EQ(Create("key"), first);
  EXPECT_NE(Create("other"), first);
}

TEST_F(ClientTrialsTest, AValueThatReachesTheTargetEndsTheStudy) {
  const Trial& trial = turn_.TrialAt(Create());
  client_trials_.SetValue(trial, 1, 0.6);
  EXPECT_EQ(turn_.StudyAt(kClientStudy).state, StudyState::kRunning);
  client_trials_.SetValue(trial, 2, 0.4);
  EXPECT_EQ(turn_.StudyAt(kClientStudy).state, StudyState::kComplete);
  EXPECT_THAT(turn_.StudyAt(kClientStudy).reason, HasSubstr("reached the target 0.5 with 0.4"));
}

TEST_F(ClientTrialsTest, TheTrialsOfThePoolAreNotForClientsToRun) {
  StudySpec spec;
  spec.name = "by the tuner";
  turn_.Emit(StudyCreated{StudyId(2), spec, turn_.now()});
  turn_.Emit(TrialCreated{TrialId(1), StudyId(2), 0, {}, turn_.now()});
  EXPECT_NE(client_trials_.OpenTrial(TrialId(1)), nullptr) << "but for notes";
  EXPECT_EQ(client_trials_.TrialToTell(TrialId(1)), nullptr);
  EXPECT_FALSE(turn_.reply().status.ok());
}

}  // namespace
}  // namespace espalier
