// What an import makes of a file, and what it says of one that does not make sense. Files of the
// real Optuna are read in tests/e2e/optuna.

#include "adapters/optuna/file/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "adapters/optuna/file/schema.h"
#include "tests/adapters/optuna/file/optuna_rows.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Time kNow{1'000'000'000};

class OptunaImport : public testing::Test {
 protected:
  OptunaImport() {
    Execute(kOptunaSchema);
    Execute(kOptunaRows);
  }

  std::string source() const { return folder_.File("optuna.db"); }
  std::string into() const { return folder_.File("tuner.db"); }

  void Execute(const std::string& sql) const {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(source().c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
  }
  std::vector<ImportedStudy> MustImport(const OptunaImportOptions& options = {}) const {
    auto imported = ImportOptuna(source(), into(), options, kNow);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? *std::move(imported) : std::vector<ImportedStudy>{};
  }
  std::string Refusal(const OptunaImportOptions& options = {},
                      absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    const absl::Status status = ImportOptuna(source(), into(), options, kNow).status();
    EXPECT_EQ(status.code(), code) << status;
    return std::string(status.message());
  }
  // What an import says after such a change of the file; it must name the file, and leave nothing.
  std::string RefusalAfter(const std::string& sql) const {
    Execute(sql);
    const std::string refusal = Refusal();
    EXPECT_THAT(refusal, HasSubstr(source()));
    EXPECT_FALSE(std::filesystem::exists(into()));
    return refusal;
  }
  TunerState Load() const {
    const auto storage = OpenSqliteStorage(into(), /*read_only=*/true);
    EXPECT_TRUE(storage.ok()) << storage.status();
    return *(*storage)->Load();
  }

  ScratchFolder folder_;
};

TEST_F(OptunaImport, TakesStudiesWithAllTheyHave) {
  const std::vector<ImportedStudy> imported = MustImport();
  ASSERT_EQ(imported.size(), 2u);
  EXPECT_EQ(imported[0].trials, 3);
  EXPECT_EQ(imported[0].renumbered, 0);
  const TunerState state = Load();
  const Study& study = *state.FindStudy("first");
  EXPECT_TRUE(study.spec.by_clients());
  EXPECT_EQ(study.spec.directions,
            (std::vector<Direction>{Direction::kMinimize, Direction::kMaximize}));
  EXPECT_EQ(study.attributes.user.at("who"), "\"é\"");
  EXPECT_EQ(study.attributes.system.at("dashboard:2:note_ver"), "1") << "follows its trial";
  ASSERT_EQ(study.trials.size(), 3u);
  const Trial& complete = state.trials.at(study.trials[0]);
  EXPECT_EQ(complete.state, TrialState::kComplete);
  EXPECT_EQ(complete.value, 0.5);
  EXPECT_EQ(complete.other_values, (std::vector<double>{-std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(complete.started, Time{1767323045'000006});
  EXPECT_EQ(complete.ended, Time{1767323046'500000});
  ASSERT_EQ(complete.suggested.size(), 2u);
  const Suggestion& choice =
      study.suggestions[static_cast<std::size_t>(complete.suggested[1].suggestion)];
  EXPECT_EQ(choice.name, "c");
  EXPECT_THAT(choice.distribution, HasSubstr("[null, NaN]"));
  EXPECT_EQ(complete.suggested[1].value, 1);
  const Trial& running = state.trials.at(study.trials[1]);
  EXPECT_EQ(running.state, TrialState::kRunning);
  EXPECT_EQ(running.ended, Time{});
  ASSERT_EQ(running.values.size(), 3u);
  EXPECT_EQ(running.values[0].step, -1);
  EXPECT_TRUE(std::isnan(running.values[1].value));
  EXPECT_TRUE(std::isinf(running.values[2].value));
  EXPECT_EQ(running.attributes.user.at("k"), "NaN");
  const Trial& waiting = state.trials.at(study.trials[2]);
  EXPECT_EQ(waiting.state, TrialState::kWaiting);
  EXPECT_EQ(waiting.attributes.system.at("fixed_params"), "{\"x\": 0.5}");
  EXPECT_EQ(state.FindStudy("second")->trials, (std::vector<TrialId>{TrialId(4)}));
}

TEST_F(OptunaImport, OrdersATrialOfAnyStudyAfterAllThatWereGiven) {
  MustImport({{"second"}, {}, {}});
  MustImport({{"first"}, {}, {}});
  const TunerState state = Load();
  EXPECT_EQ(state.FindStudy("second")->id, StudyId(1));
  EXPECT_EQ(state.FindStudy("first")->trials,
            (std::vector<TrialId>{TrialId(2), TrialId(3), TrialId(4)}));
}

TEST_F(OptunaImport, TakesTimesByTheVersionThatMadeTheFile) {
  setenv("TZ", "Asia/Tokyo", 1);
  tzset();
  MustImport({{"second"}, {}, {}});
  Execute("UPDATE version_info SET library_version = '4.5.0'");
  MustImport({{"second"}, {{"second", "local"}}, {}});
  MustImport({{"second"}, {{"second", "told"}}, OptunaTimes::kUtc});
  unsetenv("TZ");
  tzset();
  const TunerState state = Load();
  const auto start = [&](const char* name) {
    return state.trials.at(state.FindStudy(name)->trials[0]).started.us;
  };
  EXPECT_EQ(start("second"), 1767225600'000000);
  EXPECT_EQ(start("told"), start("second"));
  EXPECT_EQ(start("local"), start("second") - 9LL * 3600 * 1'000'000);
}

TEST_F(OptunaImport, RenamesAndRefusesNamesThatAreTaken) {
  MustImport();
  const TunerState before = Load();
  EXPECT_THAT(Refusal({}, absl::StatusCode::kAlreadyExists),
              AllOf(HasSubstr("\"first\" already"), HasSubstr("--rename \"first=NEW\"")));
  EXPECT_THAT(Refusal({{}, {{"first", "third"}}, {}}, absl::StatusCode::kAlreadyExists),
              HasSubstr("\"second\" already"));
  EXPECT_THAT(
      Refusal({{}, {{"first", "x"}, {"second", "x"}}, {}}, absl::StatusCode::kAlreadyExists),
      HasSubstr("two studies to import would be \"x\""));
  ExpectSame(Load(), before);
  MustImport({{}, {{"first", "third"}, {"second", "fourth"}}, {}});
  EXPECT_EQ(Load().studies.size(), 4u);
}

TEST_F(OptunaImport, RefusesStudiesThatTheFileDoesNotHave) {
  EXPECT_THAT(Refusal({{"thrid"}, {}, {}}, absl::StatusCode::kNotFound),
              AllOf(HasSubstr("no study \"thrid\""), HasSubstr("\"first\", \"second\"")));
  EXPECT_THAT(Refusal({{"first"}, {{"second", "x"}}, {}}, absl::StatusCode::kNotFound),
              HasSubstr("\"second\""));
  EXPECT_FALSE(std::filesystem::exists(into()));
}

TEST_F(OptunaImport, NumbersTrialsAnewWhereSomeAreMissing) {
  Execute(
      "DELETE FROM trial_values; DELETE FROM trial_params; DELETE FROM trials WHERE trial_id = 7");
  const std::vector<ImportedStudy> imported = MustImport();
  EXPECT_EQ(imported[0].trials, 2);
  EXPECT_EQ(imported[0].renumbered, 2);
  EXPECT_EQ(imported[1].renumbered, 0);
}

TEST_F(OptunaImport, TakesNaNThatOptunaCannotReadAgain) {
  Execute("UPDATE trial_values SET value = NULL WHERE trial_value_id = 2");
  MustImport();
  EXPECT_TRUE(std::isnan(*Load().trials.at(TrialId(1)).value));
}

TEST_F(OptunaImport, NamesTableRowAndValueOfWhatMakesNoSense) {
  EXPECT_THAT(RefusalAfter("UPDATE trials SET state = 'LOST' WHERE trial_id = 10"),
              AllOf(HasSubstr("table trials, row 10"), HasSubstr("got \"LOST\"")));
  EXPECT_THAT(RefusalAfter("UPDATE trials SET datetime_start = 'noon' WHERE trial_id = 8"),
              AllOf(HasSubstr("table trials, row 8"), HasSubstr("got \"noon\"")));
  EXPECT_THAT(RefusalAfter("UPDATE trial_params SET distribution_json = '{\"name\"' "
                           "WHERE param_id = 2"),
              AllOf(HasSubstr("table trial_params, row 2"), HasSubstr("distribution_json")));
  EXPECT_THAT(RefusalAfter("UPDATE trial_params SET param_value = 'much' WHERE param_id = 1"),
              AllOf(HasSubstr("table trial_params, row 1"), HasSubstr("got \"much\"")));
  EXPECT_THAT(RefusalAfter("UPDATE trial_values SET value_type = 'ODD' WHERE trial_value_id = 1"),
              AllOf(HasSubstr("table trial_values, row 1"), HasSubstr("got \"ODD\"")));
  EXPECT_THAT(RefusalAfter("UPDATE trial_values SET objective = 2 WHERE trial_value_id = 1; "
                           "UPDATE trial_values SET value_type = 'FINITE'"),
              AllOf(HasSubstr("table trial_values, row 1"), HasSubstr("objective needs 1, got 2")));
}

TEST_F(OptunaImport, NamesRowsOfStudiesThatMakeNoSense) {
  EXPECT_THAT(RefusalAfter("UPDATE study_user_attributes SET value_json = '{'"),
              AllOf(HasSubstr("table study_user_attributes, row 1"), HasSubstr("\"who\"")));
  EXPECT_THAT(RefusalAfter("UPDATE study_user_attributes SET value_json = '1'; "
                           "UPDATE study_directions SET direction = 'UP' WHERE study_id = 5"),
              AllOf(HasSubstr("table study_directions, row 3"), HasSubstr("got \"UP\"")));
  EXPECT_THAT(RefusalAfter("UPDATE studies SET study_name = CAST(x'ff41' AS TEXT) "
                           "WHERE study_id = 4"),
              AllOf(HasSubstr("table studies, row 4"), HasSubstr("no UTF-8")));
}

TEST_F(OptunaImport, RefusesOtherSchemas) {
  EXPECT_THAT(RefusalAfter("UPDATE alembic_version SET version_num = 'v3.0.0.d'"),
              AllOf(HasSubstr("got \"v3.0.0.d\""), HasSubstr("optuna storage upgrade")));
  EXPECT_THAT(RefusalAfter("DROP TABLE trial_values"), HasSubstr("no table trial_values"));
}

TEST_F(OptunaImport, RefusesWhatIsNoFileOfOptuna) {
  const auto refusal = [&](const std::string& path) {
    const absl::Status status = ImportOptuna(path, into(), {}, kNow).status();
    EXPECT_FALSE(std::filesystem::exists(into()));
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(folder_.File("absent.db")),
              AllOf(HasSubstr("no such file"), HasSubstr("an SQLite file of Optuna")));
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("is not a file"));
  std::ofstream(folder_.File("text.db")) << "just a text file, long enough";
  EXPECT_THAT(refusal(folder_.File("text.db")), HasSubstr("not an SQLite database"));
  std::ofstream(folder_.File("empty.db")) << "";
  EXPECT_THAT(refusal(folder_.File("empty.db")), HasSubstr("no table studies"));
}

TEST_F(OptunaImport, LeavesAFailedImportsDatabaseAsItWas) {
  MustImport({{"first"}, {}, {}});
  const TunerState before = Load();
  Execute("UPDATE trials SET state = 'LOST' WHERE trial_id = 10");
  EXPECT_THAT(Refusal({{}, {{"first", "again"}}, {}}), HasSubstr("LOST"));
  ExpectSame(Load(), before);
}

TEST_F(OptunaImport, WaitsForNoServiceThatHasTheDatabase) {
  const auto service = OpenSqliteStorage(into());
  ASSERT_TRUE(service.ok());
  EXPECT_THAT(Refusal({}, absl::StatusCode::kFailedPrecondition),
              HasSubstr("another tuner service has it open"));
}

}  // namespace
}  // namespace espalier
