// What an export writes, as an import reads it again. The real Optuna opens such files in
// tests/e2e/optuna.

#include "adapters/optuna/file/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "adapters/optuna/file/import.h"
#include "tests/storage/change_source.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using Limits = std::numeric_limits<double>;

constexpr char kFloat[] =
    R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}})";
constexpr Time kAt{1'767'323'045'000'006};

StudySpec ByClients(const std::string& name) {
  auto spec = ParseStudy("{\"name\": \"" + name +
                             "\", \"ask_and_tell\": true, \"directions\": [\"minimize\", "
                             "\"maximize\"]}",
                         "study", "/");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *std::move(spec);
}

class OptunaExport : public testing::Test {
 protected:
  std::string from() const { return folder_.File("tuner.db"); }
  std::string file() const { return folder_.File("optuna.db"); }
  std::string again() const { return folder_.File("again.db"); }

  void Fill(const std::vector<Change>& changes) const {
    const auto storage = OpenSqliteStorage(from());
    ASSERT_TRUE(storage.ok()) << storage.status();
    ASSERT_TRUE((*storage)->Commit(changes).ok());
  }
  static TunerState Load(const std::string& path) {
    const auto storage = OpenSqliteStorage(path, /*read_only=*/true);
    EXPECT_TRUE(storage.ok()) << storage.status();
    return *(*storage)->Load();
  }
  // The database after a journey through an Optuna file.
  TunerState RoundTrip() const {
    const auto exported = ExportOptuna(from(), file(), {});
    EXPECT_TRUE(exported.ok()) << exported.status();
    const auto imported = ImportOptuna(file(), again(), {}, Time{1});
    EXPECT_TRUE(imported.ok()) << imported.status();
    return Load(again());
  }

  ScratchFolder folder_;
};

TEST_F(OptunaExport, ComesBackAsItWas) {
  Fill({StudyCreated{StudyId(1), ByClients("s"), kAt},
        StudyAttributeSet{StudyId(1), false, "note", "\"é\""},
        StudyAttributeSet{StudyId(1), true, "study:metric_names", "[\"a\", \"b\"]"},
        TrialCreated{TrialId(1), StudyId(1), 0, {}, kAt},
        SuggestionAdded{StudyId(1), {"x", kFloat, "FloatDistribution"}},
        ParameterSuggested{TrialId(1), 0, {0, 0.25}},
        ValueReported{TrialId(1), {-1, Limits::quiet_NaN(), 0, kAt, 0}},
        ValueReported{TrialId(1), {2, -Limits::infinity(), 0, kAt, 0}},
        ValueReported{TrialId(1), {3, 0.125, 0, kAt, 0}},
        TrialAttributeSet{TrialId(1), false, "k", "[NaN, 12345678901234567890]"},
        TrialTold{
            TrialId(1), TrialState::kComplete, {0.5, Limits::infinity()}, kAt, Time{kAt.us + 7}},
        TrialCreated{TrialId(2), StudyId(1), 1, {}, kAt},
        TrialTold{TrialId(2), TrialState::kRunning, {}, kAt, {}},
        TrialCreated{TrialId(3), StudyId(1), 2, {}, kAt},
        TrialAttributeSet{TrialId(3), true, "fixed_params", "{}"}});
  ExpectSame(RoundTrip(), Load(from()));
}

TEST_F(OptunaExport, LeavesOutWhatTheServiceKeepsForItself) {
  Fill({StudyCreated{StudyId(1), ByClients("s"), kAt},
        StudyAttributeSet{StudyId(1), true, "nni:channel_key", "\"secret\""},
        StudyAttributeSet{StudyId(1), true, "nni:definition", "{}"},
        StudyAttributeSet{StudyId(1), true, "nni:else", "1"}});
  EXPECT_THAT(RoundTrip().studies.at(StudyId(1)).attributes.system,
              testing::ElementsAre(testing::Pair("nni:else", "1")));
}

TEST_F(OptunaExport, TakesStudiesOfThePool) {
  auto spec = ParseStudy(R"({"name": "pool", "command": ["true"], "trials": 3,
      "metric": {"name": "loss", "direction": "maximize"},
      "search_space": {"lr": {"_type": "loguniform", "_value": [0.001, 0.1]},
                       "n": {"_type": "choice", "_value": [16, 32]}}})",
                         "study", "/");
  ASSERT_TRUE(spec.ok()) << spec.status();
  Fill({StudyCreated{StudyId(1), *spec, kAt},
        TrialCreated{TrialId(1), StudyId(1), 0, {{"lr", 0.01}, {"n", std::int64_t{32}}}, kAt},
        TrialStateChanged{TrialId(1), TrialState::kRunning, kAt, "", {}, ""},
        TrialStateChanged{TrialId(1), TrialState::kPaused, kAt, "", {}, ""}});
  const TunerState state = RoundTrip();
  const Study& study = *state.FindStudy("pool");
  EXPECT_EQ(study.spec.directions, (std::vector<Direction>{Direction::kMaximize}));
  const Trial& trial = state.trials.at(TrialId(1));
  EXPECT_EQ(trial.state, TrialState::kRunning);
  ASSERT_EQ(study.suggestions.size(), 2u);
  EXPECT_EQ(study.suggestions[0].kind, "FloatDistribution log");
  EXPECT_EQ(trial.suggested[0].value, 0.01);
  EXPECT_THAT(study.suggestions[1].distribution, HasSubstr("[16, 32]"));
  EXPECT_EQ(trial.suggested[1].value, 1) << "the index of 32";
}

TEST_F(OptunaExport, TakesParametersThatNoSpaceDescribes) {
  auto spec =
      ParseStudy(R"({"name": "queued", "command": ["true"], "sampler": "queue"})", "study", "/");
  ASSERT_TRUE(spec.ok()) << spec.status();
  Fill({StudyCreated{StudyId(1), *spec, kAt},
        TrialCreated{TrialId(1), StudyId(1), 0, {{"lr", 0.25}, {"rule", std::string("a")}}, kAt},
        TrialCreated{TrialId(2), StudyId(1), 1, {{"lr", 0.5}, {"rule", true}}, kAt}});
  const TunerState state = RoundTrip();
  const Study& study = *state.FindStudy("queued");
  ASSERT_EQ(study.suggestions.size(), 2u) << "the trials share their distributions";
  EXPECT_THAT(study.suggestions[0].distribution, HasSubstr("\"low\": 0.25, \"high\": 0.5"));
  EXPECT_THAT(study.suggestions[1].distribution, HasSubstr("[\"a\", true]"));
  const Trial& second = state.trials.at(study.trials[1]);
  ASSERT_EQ(second.suggested.size(), 2u);
  EXPECT_EQ(second.suggested[0].value, 0.5);
  EXPECT_EQ(second.suggested[1].value, 1);
}

TEST_F(OptunaExport, MakesATrialThatEndedInNaNAFailedOne) {
  Fill({StudyCreated{StudyId(1), ByClients("s"), kAt},
        TrialCreated{TrialId(1), StudyId(1), 0, {}, kAt},
        TrialTold{TrialId(1), TrialState::kComplete, {0.5, Limits::quiet_NaN()}, kAt, kAt}});
  const auto exported = ExportOptuna(from(), file(), {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->at(0).nan_values, 1);
  ASSERT_TRUE(ImportOptuna(file(), again(), {}, Time{1}).ok());
  const Trial trial = Load(again()).trials.at(TrialId(1));
  EXPECT_EQ(trial.state, TrialState::kFail);
  EXPECT_FALSE(trial.value.has_value());
}

TEST_F(OptunaExport, MakesATrialOfThePoolThatCompletedWithoutAValueAFailedOne) {
  auto spec =
      ParseStudy(R"({"name": "queued", "command": ["true"], "sampler": "queue"})", "study", "/");
  ASSERT_TRUE(spec.ok()) << spec.status();
  Fill({StudyCreated{StudyId(1), *spec, kAt}, StudyCreated{StudyId(2), ByClients("theirs"), kAt},
        TrialCreated{TrialId(1), StudyId(1), 0, {}, kAt},
        TrialStateChanged{TrialId(1), TrialState::kRunning, kAt, "", {}, ""},
        TrialStateChanged{TrialId(1), TrialState::kComplete, kAt, "", {}, ""},
        TrialCreated{TrialId(2), StudyId(2), 0, {}, kAt},
        TrialTold{TrialId(2), TrialState::kComplete, {}, kAt, kAt}});
  const auto exported = ExportOptuna(from(), file(), {});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->at(0).without_value, 1);
  EXPECT_EQ(exported->at(1).without_value, 0) << "what a client ended stays as it is";
  ASSERT_TRUE(ImportOptuna(file(), again(), {}, Time{1}).ok());
  const TunerState state = Load(again());
  const auto first_of = [&](const char* study) {
    return state.trials.at(state.FindStudy(study)->trials.front()).state;
  };
  EXPECT_EQ(first_of("queued"), TrialState::kFail);
  EXPECT_EQ(first_of("theirs"), TrialState::kComplete);
}

TEST_F(OptunaExport, WritesWhatWasChosenAndNamesWhatIsNotThere) {
  Fill({StudyCreated{StudyId(1), ByClients("a"), kAt},
        StudyCreated{StudyId(2), ByClients("b"), kAt}});
  const absl::Status missing = ExportOptuna(from(), file(), {"c"}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("no study \"c\"; it has \"a\", \"b\""));
  EXPECT_FALSE(std::filesystem::exists(file()));
  const auto exported = ExportOptuna(from(), file(), {"b"});
  ASSERT_TRUE(exported.ok());
  ASSERT_EQ(exported->size(), 1u);
  EXPECT_EQ(exported->at(0).name, "b");
}

TEST_F(OptunaExport, RefusesAParameterThatIsNaNAndAFileThatIsThere) {
  Fill({StudyCreated{StudyId(1), ByClients("s"), kAt},
        TrialCreated{TrialId(1), StudyId(1), 0, {}, kAt},
        SuggestionAdded{StudyId(1), {"x", kFloat, "FloatDistribution"}},
        ParameterSuggested{TrialId(1), 0, {0, Limits::quiet_NaN()}}});
  const absl::Status refused = ExportOptuna(from(), file(), {}).status();
  EXPECT_THAT(std::string(refused.message()), HasSubstr("parameter \"x\" is NaN"));
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_EQ(ExportOptuna(from(), from(), {}).status().code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace espalier
