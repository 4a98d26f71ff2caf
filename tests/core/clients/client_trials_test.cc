#include "tuner/core/clients/client_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr StudyId kClientStudy{1};

// A study whose clients run its trials, and are silent for 10 s at the most.
class ClientTrialsTest : public ::testing::Test {
 protected:
  ClientTrialsTest() {
    turn_.Begin(TimeFromSeconds(100));
    StudySpec spec;
    spec.name = "by clients";
    spec.kind = StudyKind::kByClients;
    spec.target = 0.5;
    turn_.Emit(StudyCreated{kClientStudy, spec, turn_.now()});
  }

  static CoreOptions Options() {
    CoreOptions options;
    options.client_lease = {.seconds = 10, .max_retries = 1};
    return options;
  }
  TrialId Create(const std::string& request_key = "") {
    CreateTrial event{kClientStudy, nullptr};
    event.request_key = request_key;
    trials_.On(event);
    return turn_.Finish().reply.trial();
  }
  TrialState StateOf(TrialId id) { return turn_.TrialAt(id).state; }

  Turn turn_{TunerState{}, [this](const Change& change) { trials_.Observe(change); }};
  CoreOptions options_ = Options();
  PluginsOfStudies plugins_;
  std::vector<std::string> ended_;  // why the study was to end
  ClientTrials trials_{turn_, options_, plugins_,
                       [this](StudyId, const std::string& reason) { ended_.push_back(reason); }};
};

TEST_F(ClientTrialsTest, TheTrialOfASilentClientEndsAndIsQueuedAgain) {
  const TrialId silent = Create();
  turn_.Begin(After(turn_.now(), 6));
  const TrialId heard = Create();
  turn_.Begin(After(turn_.now(), 4));
  EXPECT_EQ(trials_.NextCheck(), TimeFromSeconds(102.5)) << "four times a lease";
  trials_.CheckLeases();
  EXPECT_EQ(StateOf(silent), TrialState::kFail);
  EXPECT_EQ(StateOf(heard), TrialState::kRunning);
  const TrialId again = turn_.state().last_trial;
  EXPECT_EQ(StateOf(again), TrialState::kWaiting);
  EXPECT_EQ(turn_.TrialAt(again).attributes.system.at("failed_trial"), "0");
}

TEST_F(ClientTrialsTest, OfADeletedStudyNothingIsKept) {
  Create("key");
  ASSERT_TRUE(trials_.NextCheck().has_value());
  turn_.Emit(StudyDeleted{kClientStudy, turn_.state().last_study, turn_.state().last_trial});
  EXPECT_EQ(trials_.NextCheck(), std::nullopt);
  ASSERT_TRUE(trials_.CheckRequestKey(kClientStudy, kCreationKey, "key").ok());
  EXPECT_FALSE(turn_.reply().existed());
}

TEST_F(ClientTrialsTest, ARequestThatIsRepeatedNamesTheTrialThatItMade) {
  const TrialId first = Create("key");
  EXPECT_EQ(Create("key"), first);
  EXPECT_NE(Create("other"), first);
}

TEST_F(ClientTrialsTest, AValueThatReachesTheTargetEndsTheStudy) {
  const Trial& trial = turn_.TrialAt(Create());
  trials_.SetValue(trial, 1, 0.6);
  EXPECT_TRUE(ended_.empty());
  trials_.SetValue(trial, 2, 0.4);
  EXPECT_THAT(ended_, ElementsAre(HasSubstr("reached the target 0.5 with 0.4")));
}

TEST_F(ClientTrialsTest, TheTrialsOfThePoolAreNotForClientsToRun) {
  StudySpec spec;
  spec.name = "by the tuner";
  turn_.Emit(StudyCreated{StudyId(2), spec, turn_.now()});
  turn_.Emit(TrialCreated{TrialId(1), StudyId(2), 0, {}, turn_.now()});
  EXPECT_NE(trials_.OpenTrial(TrialId(1)), nullptr) << "but for notes";
  EXPECT_EQ(trials_.TrialToTell(TrialId(1)), nullptr);
  EXPECT_FALSE(turn_.reply().status.ok());
}

}  // namespace
}  // namespace espalier
