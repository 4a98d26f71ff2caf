// Checking, copying and compacting database files.

#include "tuner/storage/upkeep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/storage/change_source.h"
#include "tests/storage/raw_sql.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tests/storage/undo_schema.h"
#include "tuner/storage/database.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kFloat[] =
    R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}})";

class Upkeep : public testing::Test {
 protected:
  Upkeep() {
    const auto storage = MustOpen();
    std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{1}},
                                   SuggestionAdded{StudyId(1), {"x", kFloat, "FloatDistribution"}}};
    for (int number = 0; number < 20; ++number) {
      const TrialId id(10 + number);
      changes.emplace_back(TrialCreated{id, StudyId(1), number, {}, Time{2}});
      changes.emplace_back(ParameterSuggested{id, 0, {0, 0.5}});
      changes.emplace_back(TrialAttributeSet{id, false, "note", "NaN"});
      for (int step = 0; step < 400; ++step) {
        changes.emplace_back(ValueReported{id, {step, 0.5, 0, Time{3}, 0}});
      }
    }
    EXPECT_TRUE(storage->Commit(changes).ok());
    for (const Change& change : changes) state_.Apply(change);
  }

  std::string path() const { return folder_.File("tuner.db"); }
  std::string copy() const { return folder_.File("copy.db"); }

  std::unique_ptr<Storage> MustOpen() const {
    auto storage = OpenSqliteStorage(path());
    EXPECT_TRUE(storage.ok()) << storage.status();
    return *std::move(storage);
  }
  static void ExpectHolds(const std::string& file, const TunerState& expected) {
    const auto storage = OpenSqliteStorage(file, /*read_only=*/true);
    ASSERT_TRUE(storage.ok()) << storage.status();
    const auto state = (*storage)->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSame(*state, expected);
  }
  void ExecuteRaw(const std::string& sql) const { ExecuteRawIn(path(), sql); }
  // All that is not well, as "point: what".
  std::string Faults() const {
    const auto findings = CheckDatabase(path());
    if (!findings.ok()) return std::string(findings.status().message());
    std::string faults;
    for (const Finding& finding : *findings) {
      if (!finding.ok) faults += finding.point + ": " + finding.found + "\n";
    }
    return faults;
  }
  std::vector<std::string> FilesLeft() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  ScratchFolder folder_;
  TunerState state_;
};

TEST_F(Upkeep, CheckFindsNothingInASoundFileAlsoWhileAServiceHasIt) {
  EXPECT_EQ(Faults(), "");
  const auto service = MustOpen();
  EXPECT_EQ(Faults(), "");
  const std::vector<Change> deletion = {StudyDeleted{StudyId(1), StudyId(1), TrialId(29)}};
  ASSERT_TRUE(service->Commit(deletion).ok());
  EXPECT_EQ(Faults(), "");
  ASSERT_TRUE(*service->CleanUp());
  EXPECT_EQ(Faults(), "") << "half of the rows of a deleted study";
}

TEST_F(Upkeep, CheckSaysHowMuchThereIs) {
  const auto findings = CheckDatabase(path());
  ASSERT_TRUE(findings.ok());
  EXPECT_THAT(findings->back().found,
              AllOf(HasSubstr("studies: 1, trials: 20, intermediate values: 8000"),
                    HasSubstr("trials to 29")));
}

TEST_F(Upkeep, CheckNamesWhatIsWrong) {
  ExecuteRaw("INSERT INTO suggested VALUES (10, 2, 0, 0.5)");
  EXPECT_THAT(Faults(), AllOf(HasSubstr("numbering: suggested of trial 10"),
                              HasSubstr("parameter \"x\" twice")));
  ExecuteRaw("DELETE FROM suggested WHERE trial = 10 AND position = 2");
  ExecuteRaw("UPDATE trial_attributes SET value = '{' WHERE trial = 11");
  EXPECT_THAT(Faults(), HasSubstr("contents: attribute \"note\" of trial 11 (number 1"));
  ExecuteRaw("UPDATE trial_attributes SET value = '1'");
  ExecuteRaw("UPDATE suggestions SET kind = 'IntDistribution'");
  EXPECT_THAT(Faults(), HasSubstr("parameter \"x\" of study 1"));
  ExecuteRaw("UPDATE suggestions SET kind = 'FloatDistribution'");
  EXPECT_EQ(Faults(), "");
  ExecuteRaw("DELETE FROM trials WHERE id = 29");
  EXPECT_THAT(Faults(), AllOf(HasSubstr("references: row"), HasSubstr("and 382 more"),
                              HasSubstr("contents: database")));
}

TEST_F(Upkeep, CheckFindsTrialsThatAreNotNumberedInARow) {
  ExecuteRaw("UPDATE trials SET number = 77 WHERE id = 29");
  EXPECT_THAT(Faults(), HasSubstr("trial 29: number 77 in study 1 is not the next"));
}

TEST_F(Upkeep, CheckFindsDamagedPages) {
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(std::streamoff{3} * 4096);
  file << std::string(8192, '\x5a');
  file.close();
  EXPECT_THAT(Faults(), HasSubstr("structure: "));
}

TEST_F(Upkeep, CheckFindsThatAFileWasCut) {
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) / 2);
  EXPECT_THAT(Faults(), HasSubstr("structure: "));
}

TEST_F(Upkeep, CheckRefusesWhatIsNoDatabaseOfOurs) {
  EXPECT_THAT(std::string(CheckDatabase(folder_.File("absent.db")).status().message()),
              HasSubstr("no such file"));
  EXPECT_THAT(std::string(CheckDatabase(folder_.path()).status().message()),
              HasSubstr("is not a file"));
}

TEST_F(Upkeep, BackUpIsTheSameDatabase) {
  const auto bytes = BackUpDatabase(path(), copy());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(static_cast<std::uintmax_t>(*bytes), std::filesystem::file_size(copy()));
  EXPECT_THAT(FilesLeft(), testing::Contains("copy.db"));
  EXPECT_THAT(FilesLeft(), testing::Not(testing::Contains(HasSubstr("unfinished"))));
  ExpectHolds(copy(), state_);
}

// Files that SQLite makes beside a database, and that a copy of it would have to have, too.
TEST_F(Upkeep, WhoOnlyReadsLeavesNothingBesideTheFile) {
  ASSERT_TRUE(BackUpDatabase(path(), copy()).ok());
  EXPECT_THAT(FilesLeft(), testing::UnorderedElementsAre("tuner.db", "copy.db"));
  EXPECT_EQ(Faults(), "");
  ASSERT_TRUE(CheckDatabase(copy()).ok());
  {
    const auto storage = OpenSqliteStorage(copy(), /*read_only=*/true);
    ASSERT_TRUE(storage.ok()) << storage.status();
    ASSERT_TRUE((*storage)->Load().ok());
  }
  EXPECT_THAT(FilesLeft(), testing::UnorderedElementsAre("tuner.db", "copy.db"));
  chmod(copy().c_str(), 0400);
  ASSERT_TRUE(CheckDatabase(copy()).ok());
  EXPECT_THAT(FilesLeft(), testing::UnorderedElementsAre("tuner.db", "copy.db"));
}

TEST_F(Upkeep, WhoOnlyReadsLeavesTheLogOfAKilledServiceAsItIs) {
  const auto service = MustOpen();
  const Change change = StudyAttributeSet{StudyId(1), false, "late", "1"};
  ASSERT_TRUE(service->Commit(std::vector<Change>{change}).ok());
  for (const char* part : {"", "-wal"}) {
    std::filesystem::copy_file(path() + part, copy() + part);
  }
  const auto bytes = std::filesystem::file_size(copy() + "-wal");
  state_.Apply(change);
  ExpectHolds(copy(), state_);
  ASSERT_TRUE(CheckDatabase(copy()).ok());
  EXPECT_EQ(std::filesystem::file_size(copy() + "-wal"), bytes);
}

TEST_F(Upkeep, WhoOnlyReadsCanNotWrite) {
  const auto database = Database::Open(path(), /*read_only=*/true);
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_FALSE((*database)->Execute("DELETE FROM trials").ok());
}

TEST_F(Upkeep, BackUpOfAnOpenDatabaseHasWhatItAcknowledged) {
  const auto service = MustOpen();
  const Change change = StudyAttributeSet{StudyId(1), false, "late", "1"};
  ASSERT_TRUE(service->Commit(std::vector<Change>{change}).ok());
  state_.Apply(change);
  ASSERT_TRUE(BackUpDatabase(path(), copy()).ok());
  ExpectHolds(copy(), state_);
}

TEST_F(Upkeep, OlderSchemasAreCheckedCopiedAndCompactedAsTheyAre) {
  ExecuteRaw(UndoTo(4));
  const auto findings = CheckDatabase(path());
  ASSERT_TRUE(findings.ok()) << findings.status();
  EXPECT_THAT(findings->at(1).found, HasSubstr("version 4, older"));
  EXPECT_EQ(Faults(), "");
  ASSERT_TRUE(BackUpDatabase(path(), copy()).ok());
  ASSERT_TRUE(CompactDatabase(copy()).ok());
  std::filesystem::remove(path());
  std::filesystem::rename(copy(), path());
  MustOpen();  // brings it up to date
  ExpectHolds(path(), state_);
}

TEST_F(Upkeep, BackUpOverwritesNothing) {
  std::ofstream(copy()) << "precious";
  const absl::Status status = BackUpDatabase(path(), copy()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not overwritten"));
  EXPECT_EQ(std::filesystem::file_size(copy()), 8u);
}

TEST_F(Upkeep, BackUpTakesNoNameThatHasALog) {
  for (const char* log : {"-wal", "-journal"}) {
    std::ofstream(copy() + log) << "of another database";
    EXPECT_THAT(std::string(BackUpDatabase(path(), copy()).status().message()),
                HasSubstr(copy() + log + ": exists already"));
    std::filesystem::remove(copy() + log);
  }
}

TEST_F(Upkeep, BackUpOfADamagedFileLeavesNothing) {
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) / 2);
  const absl::Status status = BackUpDatabase(path(), copy()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(FilesLeft(), testing::Not(testing::Contains(HasSubstr("copy"))));
}

TEST_F(Upkeep, BackUpNeedsAFolder) {
  EXPECT_THAT(
      std::string(BackUpDatabase(path(), folder_.File("absent/copy.db")).status().message()),
      HasSubstr("absent does not exist"));
}

TEST_F(Upkeep, CompactGivesTheRoomOfADeletedStudyBack) {
  const Change deletion = StudyDeleted{StudyId(1), StudyId(1), TrialId(29)};
  ASSERT_TRUE(MustOpen()->Commit(std::vector<Change>{deletion}).ok());
  state_.Apply(deletion);
  const auto sizes = CompactDatabase(path());
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_LT(2 * sizes->after, sizes->before);
  EXPECT_EQ(static_cast<std::uintmax_t>(sizes->after), std::filesystem::file_size(path()));
  EXPECT_THAT(FilesLeft(), ElementsAre("tuner.db"));
  ExpectHolds(path(), state_);
}

TEST_F(Upkeep, CompactKeepsWhatIsThere) {
  ASSERT_TRUE(CompactDatabase(path()).ok());
  ExpectHolds(path(), state_);
}

TEST_F(Upkeep, CompactLeavesADatabaseInUseAlone) {
  const auto service = MustOpen();
  EXPECT_THAT(std::string(CompactDatabase(path()).status().message()),
              HasSubstr("another tuner service has it open"));
}

TEST_F(Upkeep, CompactLeavesADamagedDatabaseAlone) {
  ExecuteRaw("UPDATE trial_attributes SET value = '{' WHERE trial = 11");
  EXPECT_THAT(std::string(CompactDatabase(path()).status().message()),
              AllOf(HasSubstr("left as it is"), HasSubstr("trial 11")));
}

TEST_F(Upkeep, CompactMakesNoFile) {
  EXPECT_THAT(std::string(CompactDatabase(copy()).status().message()), HasSubstr("no such file"));
  EXPECT_FALSE(std::filesystem::exists(copy()));
}

}  // namespace
}  // namespace espalier
