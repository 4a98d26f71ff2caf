// Which files a database may be, and who may have it open.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/private_files.h"
#include "tests/base/synced_paths.h"
#include "tests/storage/change_source.h"
#include "tests/storage/raw_sql.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tests/storage/undo_schema.h"
#include "tuner/storage/storage.h"
#include "tuner/storage/upkeep.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SqliteFiles : public testing::Test {
 protected:
  std::string Database() const { return folder_.File("tuner.db"); }

  std::unique_ptr<Storage> MustOpen(bool read_only = false) const {
    absl::StatusOr<std::unique_ptr<Storage>> storage = OpenSqliteStorage(Database(), read_only);
    EXPECT_TRUE(storage.ok()) << storage.status();
    return storage.ok() ? *std::move(storage) : nullptr;
  }

  std::string Refusal(const std::string& path, bool read_only = false) const {
    const absl::Status status = OpenSqliteStorage(path, read_only).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    return std::string(status.message());
  }

  void ExecuteRaw(const std::string& sql) const { ExecuteRawIn(Database(), sql); }

  void Write(const std::string& text) const { std::ofstream(Database()) << text; }

  std::vector<std::string> FilesLeft() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  static mode_t ModeOf(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }

  ScratchFolder folder_;
};

// The tests may run as root, to whom permissions mean nothing.
class AsSomebody {
 public:
  AsSomebody() : was_(geteuid()) {
    if (was_ == 0) {
      EXPECT_EQ(seteuid(kNobody), 0);
    }
  }
  ~AsSomebody() {
    if (was_ == 0) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }

 private:
  static constexpr uid_t kNobody = 65534;
  const uid_t was_;
};

TEST_F(SqliteFiles, AServiceReadsTheNewestDecisionsAndWhoOnlyReadsAllOfThem) {
  constexpr std::size_t kMore = 7;
  std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}}};
  for (std::size_t i = 0; i < kDecisionsShown + kMore; ++i) {
    changes.emplace_back(DecisionMade{
        StudyId(1), {Time{2}, 0, DecisionKind::kGrow, 1, 2, i == 0 ? "first" : "later"}});
  }
  ASSERT_TRUE(MustOpen()->Commit(changes).ok());
  const auto served = MustOpen()->Load();
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ(served->studies.at(StudyId(1)).decisions.size(), kDecisionsShown);
  const auto storage = OpenSqliteStorage(Database(), /*read_only=*/true);
  ASSERT_TRUE(storage.ok()) << storage.status();
  const auto read = (*storage)->Load();
  ASSERT_TRUE(read.ok()) << read.status();
  const Study& study = read->studies.at(StudyId(1));
  EXPECT_EQ(study.decisions.size(), kDecisionsShown + kMore);
  EXPECT_EQ(study.decisions.front().reason, "first");
  EXPECT_EQ(study.decisions_made, served->studies.at(StudyId(1)).decisions_made);
}

// What is committed is in the log, and goes with its name.
TEST_F(SqliteFiles, TheNameOfTheLogIsSafeBeforeAnythingIsCommitted) {
  for (int start = 0; start < 2; ++start) {
    TakeSyncedPaths();
    const auto storage = MustOpen();
    EXPECT_TRUE(std::filesystem::exists(Database() + "-wal"));
    EXPECT_TRUE(TakeSyncedPaths().contains(folder_.path())) << "by us: SQLite uses fdatasync";
  }
}

TEST_F(SqliteFiles, ANewDatabaseIsForItsUserAloneWhateverTheUmask) {
  const mode_t former = umask(0);
  const std::unique_ptr<Storage> storage = MustOpen();
  const std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}}};
  EXPECT_TRUE(storage->Commit(changes).ok());
  EXPECT_TRUE(BackUpDatabase(Database(), folder_.File("copy.db")).ok());
  umask(former);
  EXPECT_THAT(FilesLeft(), testing::IsSupersetOf({"tuner.db-wal", "tuner.db-shm"}));
  for (const std::string name : {"tuner.db", "tuner.db-wal", "tuner.db-shm", "copy.db"}) {
    EXPECT_EQ(ModeOf(folder_.File(name)), 0600) << name;
  }
}

TEST_F(SqliteFiles, ADatabaseThatIsThereKeepsItsMode) {
  Write("");
  ASSERT_EQ(chmod(Database().c_str(), 0644), 0);
  testing::internal::CaptureStdout();
  MustOpen();
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("mode 644"), HasSubstr("chmod 600 " + Database())));
  EXPECT_EQ(ModeOf(Database()), 0644);
  ASSERT_EQ(chmod(Database().c_str(), 0600), 0);
  testing::internal::CaptureStdout();
  MustOpen();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(SqliteFiles, RefusesAFileThatIsNotADatabase) {
  Write("{\"name\": \"not a database, but some JSON\"}");
  EXPECT_THAT(Refusal(Database()), AllOf(HasSubstr("not an SQLite database"),
                                         HasSubstr("or of a file that does not exist yet")));
  EXPECT_THAT(Refusal(Database(), true), AllOf(HasSubstr("not an SQLite database"),
                                               testing::Not(HasSubstr("does not exist yet"))));
  EXPECT_THAT(FilesLeft(), ElementsAre("tuner.db"));
}

TEST_F(SqliteFiles, RefusesAFileShorterThanADatabasesFirstWords) {
  Write("x");
  EXPECT_THAT(Refusal(Database()), HasSubstr("not an SQLite database"));
}

TEST_F(SqliteFiles, RefusesTheDatabaseOfAnotherProgramAndLeavesItAlone) {
  ExecuteRaw("CREATE TABLE songs (name TEXT)");
  EXPECT_THAT(Refusal(Database()), HasSubstr("not one of Espalier's"));
  EXPECT_THAT(Refusal(Database(), true), HasSubstr("not one of Espalier's"));
  EXPECT_THAT(FilesLeft(), ElementsAre("tuner.db"));
  ExecuteRaw("INSERT INTO songs VALUES ('still here')");
}

TEST_F(SqliteFiles, RefusesTheSchemaOfANewerEspalier) {
  MustOpen();
  ExecuteRaw("PRAGMA user_version = 99");
  EXPECT_THAT(Refusal(Database()), AllOf(HasSubstr("newer Espalier"), HasSubstr("schema 99")));
  EXPECT_THAT(Refusal(Database(), true), HasSubstr("newer Espalier"));
}

TEST_F(SqliteFiles, BringsAnOlderSchemaUpToTheLatest) {
  MustOpen();
  ExecuteRaw(
      UndoTo(1) +
      "INSERT INTO studies SELECT 1, 's', '{\"name\": \"s\", \"trials\": 1, \"command\": [\"x\"], "
      "\"search_space\": {\"a\": {\"_type\": \"uniform\", \"_value\": [0, 1]}}}', 0, 0, "
      "'RUNNING', '', 1, 0, 0, 1; "
      "INSERT INTO trials SELECT 1, 1, 0, '{\"a\": 0.5}', 1, 'RUNNING', NULL, 1, 0, '', '', 1, 0, "
      "0, ''; INSERT INTO resizes SELECT 1, 0, 5, 2, 1, 2, 0.25, 1");
  EXPECT_THAT(Refusal(Database(), true), HasSubstr("older schema 1"));
  const std::unique_ptr<Storage> storage = MustOpen();
  TrainingFigures figures;
  figures[Figure::kGoodput] = 12.5;
  const std::vector<Change> changes = {
      FiguresRecorded{TrialId(1), figures}, TrialAttributeSet{TrialId(1), false, "note", "\"old\""},
      ValueReported{TrialId(1), {3, 0.5, 0, Time{7}, 0}, {{"loss", 1.5}}}};
  ASSERT_TRUE(storage->Commit(changes).ok());
  const auto state = storage->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  const Trial& trial = state->trials.at(TrialId(1));
  EXPECT_EQ(trial.figures, figures);
  EXPECT_EQ(trial.attributes.user.at("note"), "\"old\"");
  EXPECT_EQ(trial.extra.at(3).at("loss"), 1.5);
  EXPECT_EQ(state->last_trial, TrialId(1));
  ASSERT_EQ(trial.resizes.size(), 1u);
  EXPECT_EQ(trial.resizes[0].form_s, 0);
  EXPECT_TRUE(trial.resizes[0].after_loss);
}

TEST_F(SqliteFiles, BringsEveryOlderSchemaUpToTheLatest) {
  MustOpen();
  for (const auto& [version, undo] : kUndoSql) {
    ExecuteRaw(UndoTo(version));
    EXPECT_THAT(Refusal(Database(), true), HasSubstr(absl::StrCat("older schema ", version)));
    EXPECT_TRUE(MustOpen()->Load().ok());
    ExecuteRaw("SELECT trial, step, name, value FROM extra_figures");
    ExecuteRaw("SELECT option, name, value FROM pool_policy");
    ExecuteRaw("SELECT t.checkpoint_step, c.node FROM trials t, checkpoint_copies c");
    ExecuteRaw("SELECT id, hash, role, name, created_us, expires_us, removed_us FROM tokens");
    ExecuteRaw("SELECT trial, name, value FROM figures");
    ExecuteRaw("SELECT held, cancelled, environment FROM trials");
    ExecuteRaw(
        "SELECT joins_failed, joins_work_at, join_failure, join_failed_us, join_failed_step "
        "FROM trials");
    ExecuteRaw(
        "SELECT node, number, since_us, slots, gpu_type, spot, price_per_hour FROM node_terms");
    ExecuteRaw("SELECT d.figures, v.promise, v.goodput FROM decisions d, trial_values v");
    ExecuteRaw("SELECT node, up, at_us, slots, spot, price_per_hour, why FROM node_events");
  }
}

TEST_F(SqliteFiles, KeepsACopyOfWhatItBringsUpToDate) {
  MustOpen();
  EXPECT_THAT(FilesLeft(), ElementsAre("tuner.db"));
  const std::string copy = Database() + ".schema-9";
  for (const std::string& name : {copy, copy + "-2"}) {
    ExecuteRaw(UndoTo(9));
    ExecuteRaw("INSERT INTO nodes VALUES ((SELECT count(*) FROM nodes) + 1, 'a')");
    MustOpen();
    EXPECT_EQ(ModeOf(name), 0600);
  }
  MustOpen();
  EXPECT_THAT(FilesLeft(), testing::UnorderedElementsAre("tuner.db", "tuner.db.schema-9",
                                                         "tuner.db.schema-9-2"));
  // As they were then: of that schema, and with what there was.
  ExecuteRawIn(copy,
               "INSERT INTO nodes VALUES (2, 'free'); SELECT 1 / (user_version = 9) FROM "
               "pragma_user_version");
  ExecuteRawIn(copy + "-2", "INSERT INTO nodes VALUES (3, 'free')");
}

// As after a crash: the log is still there.
TEST_F(SqliteFiles, RefusesADamagedFileThatNobodyClosed) {
  ChangeSource source(5);
  std::vector<Change> changes;
  for (int i = 0; i < 400; ++i) changes.push_back(source.Next());
  ASSERT_TRUE(MustOpen()->Commit(changes).ok());
  const std::unique_ptr<Storage> service = MustOpen();
  const std::vector<Change> last = {source.Next()};
  ASSERT_TRUE(service->Commit(last).ok());
  const std::string killed = folder_.File("killed.db");
  for (const bool damaged : {false, true}) {
    std::filesystem::copy_file(Database(), killed,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(Database() + "-wal", killed + "-wal");
    if (damaged) {
      std::fstream file(killed, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(std::streamoff{8} * 4096);
      file << std::string(std::size_t{8} * 4096, '\x5a');
    }
    const absl::Status status = OpenSqliteStorage(killed).status();
    EXPECT_EQ(status.ok(), !damaged) << status;
    if (!damaged) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(killed), HasSubstr("was not closed"),
                      HasSubstr("tuner db restore BACKUP " + killed)));
  }
}

// Before schema 10 they were system attributes and the first word of a reason.
TEST_F(SqliteFiles, TakesWhatClientsSaidOfQueuedTrialsFromOlderSchemas) {
  const std::string trial =
      "INSERT INTO trials (id, study, number, parameters, created_us, state, started_us, ended_us, "
      "reason, last_output, generation, restarts, pinned_slots, checkpoint) VALUES ";
  for (int version = 4; version <= 9; ++version) {
    SCOPED_TRACE(version);
    std::filesystem::remove(Database());
    MustOpen();
    ExecuteRaw(absl::StrCat(
        UndoTo(version),
        "INSERT INTO studies SELECT 1, 's', '{\"name\": \"s\", \"sampler\": \"queue\", "
        "\"command\": [\"x\"]}', 0, 0, 'RUNNING', '', 1, 0, 0, 1; ",
        trial, "(1, 1, 0, '{}', 1, 'PAUSED', 1, 0, '', '', 0, 0, 0, ''), ",
        "(2, 1, 1, '{}', 1, 'FAIL', 1, 2, 'cancelled by the user', '', 0, 0, 0, ''), ",
        "(3, 1, 2, '{}', 1, 'FAIL', 1, 2, 'exit code 1', '', 0, 0, 0, ''), ",
        "(4, 1, 3, '{}', 1, 'PRUNED', 1, 2, 'cancelled', '', 0, 0, 0, ''); ",
        "INSERT INTO trial_attributes VALUES (1, 1, 'espalier:held', 'true'), ",
        "(3, 1, 'espalier:held', 'false'), (4, 0, 'espalier:held', 'true'), ",
        "(1, 1, 'espalier:environment', '{\"B\": \"2\", \"A\": \"x y\", \"N\": 3}'), ",
        "(2, 1, 'espalier:environment', 'no JSON'), (1, 1, 'nni:trial', '\"t\"')"));
    const auto state = MustOpen()->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    const auto& trials = state->trials;
    const Trial& first = trials.at(TrialId(1));
    EXPECT_TRUE(first.held);
    EXPECT_EQ(first.environment, (ProcessVariables{{"A", "x y"}, {"B", "2"}}));
    EXPECT_EQ(first.attributes.system,
              (std::map<std::string, std::string>{{"nni:trial", "\"t\""}}));
    EXPECT_TRUE(trials.at(TrialId(2)).cancelled);
    EXPECT_TRUE(trials.at(TrialId(2)).environment.empty());
    EXPECT_FALSE(trials.at(TrialId(3)).held);
    EXPECT_FALSE(trials.at(TrialId(3)).cancelled);
    EXPECT_FALSE(trials.at(TrialId(4)).held) << "a user's own attribute";
    EXPECT_FALSE(trials.at(TrialId(4)).cancelled);
    EXPECT_EQ(trials.at(TrialId(4)).attributes.user.size(), 1u);
  }
}

// Each figure with a number of its own, one of them not a number.
TrainingFigures EveryFigure() {
  TrainingFigures figures;
  double next = 1;
  for (const FigureRow& row : kFigureRows) figures[row.figure] = next++;
  figures[Figure::kMemory] = 9007199254740992.0;
  figures[Figure::kLossScale] = std::numeric_limits<double>::quiet_NaN();
  return figures;
}

void ExpectSameFigures(const TrainingFigures& actual, const TrainingFigures& expected) {
  for (const FigureRow& row : kFigureRows) {
    const double value = expected[row.figure];
    EXPECT_THAT(actual[row.figure], testing::NanSensitiveDoubleEq(value)) << row.name;
  }
}

TrainingFigures GoodputAlone() {
  TrainingFigures figures;
  figures[Figure::kGoodput] = 12.5;
  return figures;
}

// Trial 1 with every figure, trial 2 with one.
std::vector<Change> TrialsWithFigures() {
  return {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}},
          TrialCreated{TrialId(1), StudyId(1), 0, {}, Time{2}},
          TrialCreated{TrialId(2), StudyId(1), 1, {}, Time{2}},
          FiguresRecorded{TrialId(1), EveryFigure()}, FiguresRecorded{TrialId(2), GoodputAlone()}};
}

TEST_F(SqliteFiles, KeepsEveryFigureAndForgetsTheFormerOne) {
  ASSERT_TRUE(MustOpen()->Commit(TrialsWithFigures()).ok());
  auto state = MustOpen()->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ExpectSameFigures(state->trials.at(TrialId(1)).figures, EveryFigure());
  EXPECT_EQ(state->trials.at(TrialId(2)).figures, GoodputAlone());
  const std::vector<Change> later = {FiguresRecorded{TrialId(1), GoodputAlone()}};
  ASSERT_TRUE(MustOpen()->Commit(later).ok());
  ExecuteRaw("INSERT INTO figures VALUES (1, 'of_another_release', 7)");
  state = MustOpen()->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->trials.at(TrialId(1)).figures, GoodputAlone());
}

TEST_F(SqliteFiles, TakesEveryFigureOverFromEveryOlderSchemaThatHasThem) {
  ASSERT_TRUE(MustOpen()->Commit(TrialsWithFigures()).ok());
  TrainingFigures expected = EveryFigure();
  for (const auto& [version, undo] : kUndoSql) {
    if (version < 2) continue;
    SCOPED_TRACE(absl::StrCat("schema ", version));
    // Up to then each figure had a column, and these did not exist.
    if (version <= 10) {
      for (const Figure later : {Figure::kGradientTransport, Figure::kGrowthStep}) {
        expected[later] = 0;
      }
    }
    ExecuteRaw(UndoTo(version));
    const auto state = MustOpen()->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSameFigures(state->trials.at(TrialId(1)).figures, expected);
    EXPECT_EQ(state->trials.at(TrialId(2)).figures, GoodputAlone());
  }
}

TEST_F(SqliteFiles, RunsTheSuccessorOfAReplacedPolicy) {
  MustOpen();
  ExecuteRaw(
      "INSERT INTO studies SELECT 1, 's', '{\"name\": \"s\", \"trials\": 1, \"command\": [\"x\"], "
      "\"policy\": {\"name\": \"marginal_gain\", \"min_gain\": 0.1}, "
      "\"search_space\": {\"a\": {\"_type\": \"uniform\", \"_value\": [0, 1]}}}', 0, 0, "
      "'RUNNING', '', 1, 0, 0, 1");
  const auto state = MustOpen()->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  const StudySpec& spec = state->studies.at(StudyId(1)).spec;
  EXPECT_EQ(spec.policy.name, "promise_goodput");
  EXPECT_EQ(spec.policy.options.size(), 1u);
  EXPECT_THAT(WriteStudy(DefinitionOf(state->studies.at(StudyId(1)))), HasSubstr("marginal_gain"))
      << "what the user wrote";
}

TEST_F(SqliteFiles, RefusesAMissingFolder) {
  EXPECT_THAT(Refusal(folder_.File("absent/tuner.db")),
              AllOf(HasSubstr("absent does not exist"), HasSubstr("create it")));
}

TEST_F(SqliteFiles, RefusesAFolderInPlaceOfAFile) {
  EXPECT_THAT(Refusal(folder_.path()), HasSubstr("is not a file"));
}

TEST_F(SqliteFiles, RefusesAFileThatCannotBeWritten) {
  MustOpen();
  ASSERT_EQ(chmod(Database().c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  const AsSomebody somebody;
  EXPECT_THAT(Refusal(Database()), HasSubstr("cannot be written: Permission denied"));
}

TEST_F(SqliteFiles, RefusesAFolderThatCannotBeWritten) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  const AsSomebody somebody;
  EXPECT_THAT(Refusal(Database()), HasSubstr("its folder"));
}

TEST_F(SqliteFiles, RefusesAFileThatCannotBeRead) {
  MustOpen();
  ASSERT_EQ(chmod(Database().c_str(), 0000), 0);
  const AsSomebody somebody;
  EXPECT_THAT(Refusal(Database()), HasSubstr("cannot be read: Permission denied"));
}

TEST_F(SqliteFiles, RefusesAFolderThatMayNotBeEntered) {
  MustOpen();
  ASSERT_EQ(chmod(folder_.path().c_str(), 0600), 0);
  const AsSomebody somebody;
  const std::string refused =
      "its folder " + folder_.path() + " may not be entered: Permission denied";
  EXPECT_THAT(Refusal(Database()), HasSubstr(refused));
  EXPECT_THAT(Refusal(Database(), true), HasSubstr(refused));
  EXPECT_THAT(Refusal(folder_.File("within/tuner.db"), true), HasSubstr("may not be entered"));
}

TEST_F(SqliteFiles, ReadsAFileInAFolderThatCannotBeWritten) {
  const std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}}};
  ASSERT_TRUE(MustOpen()->Commit(changes).ok());
  const std::string odd = folder_.File("50% of #1?.db");
  std::filesystem::rename(Database(), odd);
  ASSERT_EQ(chmod(odd.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  const AsSomebody somebody;
  const auto storage = OpenSqliteStorage(odd, /*read_only=*/true);
  ASSERT_TRUE(storage.ok()) << storage.status();
  const auto read = (*storage)->Load();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NE(read->FindStudy("s"), nullptr);
  EXPECT_THAT(FilesLeft(), ElementsAre("50% of #1?.db"));
}

TEST_F(SqliteFiles, TakesAnEmptyFile) {
  Write("");
  ASSERT_TRUE(MustOpen()->Load().ok());
}

// The journal of a transaction before which the file had so many pages: what SQLite syncs before it
// writes to the file itself.
std::string JournalWith(char pages_before) {
  const std::string header = std::string("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8) +
                             std::string("\0\0\0\0nonc\0\0\0", 11) + pages_before +
                             std::string("\0\0\2\0\0\0\x10\0", 8);
  return header + std::string(512 - header.size(), '\0');
}

TEST_F(SqliteFiles, MakesADatabaseAnewThatWasCutOffWhileItWasMade) {
  const std::string zeros(4096, '\0');
  for (const std::string& left : {zeros, zeros.substr(0, 512), zeros.substr(0, 1), std::string("S"),
                                  "SQLite form" + zeros.substr(11)}) {
    std::filesystem::remove(Database());
    Write(left);
    std::ofstream(Database() + "-journal") << JournalWith(0);
    // SQLite takes one byte for none.
    EXPECT_THAT(Refusal(Database(), true),
                HasSubstr(left.size() == 1 ? "is empty" : "was stopped in the middle"));
    const auto storage = MustOpen();
    ASSERT_NE(storage, nullptr) << left.size();
    const std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}}};
    EXPECT_TRUE(storage->Commit(changes).ok());
    EXPECT_FALSE(std::filesystem::exists(Database() + "-journal"));
  }
}

TEST_F(SqliteFiles, RefusesWhatMayBeSomebodysAndLeavesItAlone) {
  const std::string zeros(4096, '\0');
  struct Left {
    std::string file, journal;
  };
  for (const Left& left :
       {Left{zeros, ""}, Left{zeros, "a text"}, Left{zeros, JournalWith(1)},
        Left{zeros, JournalWith(0).substr(0, 18)}, Left{std::string(70'000, '\0'), JournalWith(0)},
        Left{zeros + "x", JournalWith(0)}, Left{"a text", JournalWith(0)}}) {
    Write(left.file);
    std::ofstream(Database() + "-journal") << left.journal;
    EXPECT_THAT(Refusal(Database()), HasSubstr("not an SQLite database"));
    EXPECT_EQ(TextOfFile(Database()), left.file);
    EXPECT_EQ(TextOfFile(Database() + "-journal"), left.journal);
  }
}

TEST_F(SqliteFiles, AreNotServedWhereTheDiskFailsWhileTheyAreMade) {
  for (const char* beside : {"-journal", "", "-wal"}) {
    const std::string folder = folder_.File(std::string("fails") + beside);
    std::filesystem::create_directory(folder);
    const std::string database = folder + "/tuner.db";
    FailSyncOf(database + beside);
    const absl::Status status = OpenSqliteStorage(database).status();
    EXPECT_TRUE(SyncHasFailed()) << beside;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(database), HasSubstr("I/O error")))
        << beside;
    EXPECT_TRUE(OpenSqliteStorage(database).ok()) << beside;
  }
}

// The process before may have ended because the disk did not take it.
TEST_F(SqliteFiles, TheLogThatAnEndedServiceLeftIsOnTheDiskBeforeMoreIsCommitted) {
  const auto service = MustOpen();
  const std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}}};
  ASSERT_TRUE(service->Commit(changes).ok());
  const std::string killed = folder_.File("killed.db");
  for (const char* beside : {"", "-wal"}) {
    std::filesystem::copy_file(Database() + beside, killed + beside);
  }
  FailSyncOf(killed + "-wal");
  EXPECT_THAT(std::string(OpenSqliteStorage(killed).status().message()),
              AllOf(HasSubstr(killed), HasSubstr("Input/output error")));
  EXPECT_EQ(TextOfFile(killed + "-wal"), TextOfFile(Database() + "-wal")) << "it stays";
  TakeSyncedPaths();
  const auto again = OpenSqliteStorage(killed);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(TakeSyncedPaths().contains(killed + "-wal")) << "by us: SQLite uses fdatasync";
  EXPECT_EQ(TextOfFile(killed + "-wal"), TextOfFile(Database() + "-wal"));
  EXPECT_EQ((*again)->Load()->studies.size(), 1U);
}

TEST_F(SqliteFiles, RefusesAnEmptyOrAbsentFileForReading) {
  EXPECT_THAT(Refusal(Database(), true), HasSubstr("no such file"));
  EXPECT_THAT(FilesLeft(), ElementsAre());
  Write("");
  EXPECT_THAT(Refusal(Database(), true), HasSubstr("is empty"));
}

TEST_F(SqliteFiles, LeavesOnlyTheDatabaseWhenClosed) {
  MustOpen();
  EXPECT_THAT(FilesLeft(), ElementsAre("tuner.db"));
  EXPECT_NE(MustOpen(), nullptr);
}

TEST_F(SqliteFiles, IsReadWhileAServiceWrites) {
  const std::unique_ptr<Storage> service = MustOpen();
  ChangeSource source(3);
  const std::unique_ptr<Storage> reader = MustOpen(true);
  for (int i = 0; i < 50; ++i) {
    const std::vector<Change> changes = {source.Next()};
    ASSERT_TRUE(service->Commit(changes).ok());
    const absl::StatusOr<TunerState> state = reader->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSame(*state, source.state());
  }
}

TEST_F(SqliteFiles, IsReadAfterTheServiceEnded) {
  ChangeSource source(4);
  std::vector<Change> changes;
  for (int i = 0; i < 50; ++i) changes.push_back(source.Next());
  ASSERT_TRUE(MustOpen()->Commit(changes).ok());
  const absl::StatusOr<TunerState> state = MustOpen(true)->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ExpectSame(*state, source.state());
}

TEST_F(SqliteFiles, DoesNotCommitWhenReadOnly) {
  MustOpen();
  const std::vector<Change> changes = {NodeRegistered{NodeId(1), "a"}};
  const absl::Status status = MustOpen(true)->Commit(changes);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("reading only"));
}

}  // namespace
}  // namespace espalier
