// A backup in the place of a database, and what the service that goes on with it may not repeat.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/base/synced_paths.h"
#include "tests/storage/change_source.h"
#include "tests/storage/raw_sql.h"
#include "tests/storage/scratch_folder.h"
#include "tests/storage/undo_schema.h"
#include "tuner/storage/storage.h"
#include "tuner/storage/upkeep.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

constexpr std::int64_t kJump = 1'000'000'000;

class Restore : public testing::Test {
 protected:
  // A study with an ended and a running trial, and tokens of which one has been revoked.
  Restore() {
    Commit({StudyCreated{StudyId(3), SpecForTests("kept"), Time{1}},
            TrialCreated{TrialId(10), StudyId(3), 0, {}, Time{2}},
            TrialStateChanged{TrialId(10), TrialState::kRunning, Time{3}, ""},
            TrialStateChanged{TrialId(10), TrialState::kComplete, Time{3}, "done"},
            TrialCreated{TrialId(11), StudyId(3), 1, {}, Time{2}},
            TrialStateChanged{TrialId(11), TrialState::kRunning, Time{3}, ""},
            GenerationAdvanced{TrialId(11), 7}, ReplicaIdsReserved{5000}, TokenKept{Token("good")},
            TokenKept{Token("revoked", Time{9})}});
    EXPECT_TRUE(BackUpDatabase(path(), backup()).ok());
  }

  std::string path() const { return folder_.File("pool.db"); }
  std::string backup() const { return folder_.File("monday.db"); }
  std::string former() const { return folder_.File("pool.db.replaced"); }

  static KeptToken Token(const std::string& id, Time removed = {}) {
    return {.id = id,
            .hash = "h",
            .role = "submit",
            .name = id,
            .created = Time{5},
            .expires = {},
            .removed = removed};
  }
  void Commit(const std::vector<Change>& changes) const {
    const auto storage = OpenSqliteStorage(path());
    ASSERT_TRUE(storage.ok()) << storage.status();
    const absl::Status status = (*storage)->Commit(changes);
    EXPECT_TRUE(status.ok()) << status;
  }
  void CommitLater() const {
    Commit({StudyCreated{StudyId(4), SpecForTests("lost"), Time{1}}, TokenKept{Token("later")},
            TokenKept{Token("good", Time{8})}});
  }

  RestoredDatabase MustRestore(const RestoreOptions& options) const {
    const auto restored = RestoreDatabase(backup(), path(), options);
    EXPECT_TRUE(restored.ok()) << restored.status();
    return restored.value_or(RestoredDatabase{});
  }
  std::string Refusal(const std::string& from, const std::string& to,
                      const RestoreOptions& options = {.now = Time{1}}) const {
    return std::string(RestoreDatabase(from, to, options).status().message());
  }
  static TunerState MustLoad(const std::string& file) {
    const auto storage = OpenSqliteStorage(file, /*read_only=*/true);
    EXPECT_TRUE(storage.ok()) << storage.status();
    auto state = storage.ok() ? (*storage)->Load() : storage.status();
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *std::move(state) : TunerState{};
  }
  std::vector<std::string> FilesLeft() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  const Time now_{1'795'000'000'000'000};
  ScratchFolder folder_;
};

TEST_F(Restore, PutsTheBackupBackAndKeepsWhatWasThere) {
  CommitLater();
  EXPECT_EQ(MustRestore({.now = now_}).former, former());
  EXPECT_THAT(MustLoad(path()).studies, ElementsAre(Key(StudyId(3))));
  EXPECT_THAT(MustLoad(former()).studies, ElementsAre(Key(StudyId(3)), Key(StudyId(4))));
  EXPECT_TRUE(CheckSound(path(), "").ok());
  struct stat status {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(MustRestore({.now = now_}).former, former() + "-2");
  EXPECT_THAT(FilesLeft(), testing::Not(testing::Contains(HasSubstr("unfinished"))));
  Commit({NodeRegistered{NodeId(1), "served"}});
}

TEST_F(Restore, KeepsTheLogOfADatabaseThatNobodyClosed) {
  const auto service = OpenSqliteStorage(path());
  ASSERT_TRUE(service.ok());
  const std::vector<Change> late = {StudyCreated{StudyId(4), SpecForTests("late"), Time{1}}};
  ASSERT_TRUE((*service)->Commit(late).ok());
  const std::string killed = folder_.File("killed.db");
  std::filesystem::copy_file(path(), killed);
  std::filesystem::copy_file(path() + "-wal", killed + "-wal");
  const auto restored = RestoreDatabase(backup(), killed, {.now = now_});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT(MustLoad(killed).studies, ElementsAre(Key(StudyId(3))));
  // At no moment has the file one name and its log another: the log went back into it first.
  EXPECT_FALSE(std::filesystem::exists(restored->former + "-wal"));
  EXPECT_THAT(MustLoad(restored->former).studies, ElementsAre(Key(StudyId(3)), Key(StudyId(4))));
}

TEST_F(Restore, TakesThePlaceOfWhatIsDamagedOrGone) {
  std::ofstream(path()) << "no database at all";
  EXPECT_EQ(MustRestore({.now = now_}).former, former());
  EXPECT_EQ(std::filesystem::file_size(former()), 18U);
  EXPECT_EQ(MustLoad(path()).studies.size(), 1U);
  std::filesystem::remove(path());
  std::ofstream(path() + "-wal") << "of the one that is gone";
  EXPECT_EQ(MustRestore({.now = now_}).former, "");
  EXPECT_EQ(MustLoad(path()).studies.size(), 1U);
  std::filesystem::remove(former());
  std::ofstream(former() + "-wal") << "of the one that is gone";
  EXPECT_EQ(MustRestore({.now = now_}).former, former() + "-2");
}

TEST_F(Restore, TakesNoPlaceWhereTheDiskFailsBeforeAllIsWritten) {
  CommitLater();
  const std::string copy = absl::StrCat(path(), ".unfinished-", getpid());
  int failed = 0;
  for (int later = 0;; ++later) {
    FailSyncOf(copy + "-wal", later);
    const auto restored = RestoreDatabase(backup(), path(), {.now = now_});
    if (!SyncHasFailed()) break;
    ++failed;
    EXPECT_THAT(std::string(restored.status().message()), HasSubstr(copy));
    EXPECT_THAT(MustLoad(path()).studies, ElementsAre(Key(StudyId(3)), Key(StudyId(4))));
    EXPECT_THAT(FilesLeft(), testing::Not(testing::Contains(HasSubstr("unfinished"))));
    EXPECT_FALSE(std::filesystem::exists(former()));
  }
  EXPECT_GE(failed, 2) << "of the commit, and of what writes the log back";
  EXPECT_THAT(MustLoad(path()).studies, ElementsAre(Key(StudyId(3))));
}

// Else a loss of power might leave the copy with the log of the database before.
TEST_F(Restore, TakesNoPlaceBeforeTheLogThatWasThereIsSurelyGone) {
  const std::string log = path() + "-wal";
  for (const bool gone : {false, true}) {
    absl::Status refused;
    for (int later = 0; refused.ok(); ++later) {
      // SQLite syncs the folder, too, and takes no notice where that fails: then this restores.
      if (gone) {
        std::filesystem::remove(path());
      } else {
        CommitLater();
      }
      std::ofstream(log) << "of the database before";
      FailSyncOf(folder_.path(), later);
      refused = RestoreDatabase(backup(), path(), {.now = now_}).status();
      ASSERT_TRUE(SyncHasFailed());
    }
    EXPECT_THAT(std::string(refused.message()), HasSubstr("cannot be synced"));
    if (gone) {
      EXPECT_FALSE(std::filesystem::exists(path()));
    } else {
      EXPECT_THAT(MustLoad(path()).studies, ElementsAre(Key(StudyId(3)), Key(StudyId(4))));
    }
  }
}

TEST_F(Restore, IdsGoOnBehindAllThatWereGiven) {
  MustRestore({.now = now_});
  const TunerState first = MustLoad(path());
  EXPECT_GE(first.last_study.value, now_.us);
  EXPECT_GE(first.last_trial.value, now_.us);
  EXPECT_GE(first.replica_ids_below, now_.us);
  EXPECT_EQ(first.replica_ids_from, first.replica_ids_below);
  EXPECT_EQ(first.trials.at(TrialId(10)).generation, 0) << "it has ended";
  EXPECT_GE(first.trials.at(TrialId(11)).generation, now_.us / 1'000'000);
  // The same backup again, after a day in which ids were given.
  const Time later{now_.us + 86'400'000'000};
  MustRestore({.now = later});
  const TunerState second = MustLoad(path());
  EXPECT_GE(second.last_trial.value, later.us);
  EXPECT_GT(second.trials.at(TrialId(11)).generation, first.trials.at(TrialId(11)).generation);
}

TEST_F(Restore, IdsGoOnThoughTheClockIsWrong) {
  MustRestore({.now = Time{1}});
  const TunerState state = MustLoad(path());
  EXPECT_EQ(state.last_study.value, 5000 + kJump);
  EXPECT_EQ(state.last_trial.value, 5000 + kJump);
  EXPECT_EQ(state.replica_ids_from, 5000 + kJump);
  EXPECT_GT(state.trials.at(TrialId(11)).generation, 7);
}

TEST_F(Restore, RevokesAllTokensSinceOneMayHaveBeenRevokedMeanwhile) {
  CommitLater();
  EXPECT_EQ(MustRestore({.now = now_}).tokens_revoked, 1);
  const TunerState state = MustLoad(path());
  EXPECT_THAT(state.tokens, ElementsAre(Key("good"), Key("revoked")));
  EXPECT_EQ(state.tokens.at("good").removed, now_);
  EXPECT_EQ(state.tokens.at("revoked").removed, Time{9});
}

TEST_F(Restore, KeepsTokensWhereItIsAskedTo) {
  EXPECT_EQ(MustRestore({.now = now_, .keep_tokens = true}).tokens_revoked, 0);
  EXPECT_EQ(MustLoad(path()).tokens.at("good").removed, Time{});
}

TEST_F(Restore, BringsAnOlderSchemaUpToDate) {
  ExecuteRawIn(backup(), UndoTo(8));
  EXPECT_EQ(MustRestore({.now = now_}).tokens_revoked, 0);
  EXPECT_EQ(MustLoad(path()).trials.size(), 2U);
  EXPECT_THAT(FilesLeft(), testing::Not(testing::Contains(HasSubstr("schema"))));
}

TEST_F(Restore, LeavesADatabaseInUseAlone) {
  const auto service = OpenSqliteStorage(path());
  ASSERT_TRUE(service.ok());
  EXPECT_THAT(Refusal(backup(), path()), HasSubstr("another tuner service has it open"));
  EXPECT_TRUE((*service)->CheckStillThere().ok());
}

TEST_F(Restore, ChangesNothingWhereItIsRefused) {
  CommitLater();
  EXPECT_THAT(Refusal(path(), path()), HasSubstr("is the backup itself"));
  EXPECT_THAT(Refusal(folder_.File("absent.db"), path()), HasSubstr("no such file"));
  EXPECT_THAT(Refusal(backup(), folder_.path()), HasSubstr("is not a file"));
  const RestoreOptions stopped{
      .now = now_, .before_it_is_there = [] { return absl::InternalError("no credentials"); }};
  EXPECT_THAT(Refusal(backup(), path(), stopped), HasSubstr("no credentials"));
  ExecuteRawIn(backup(), "UPDATE trials SET number = 77 WHERE id = 11");
  EXPECT_THAT(Refusal(backup(), path()), AllOf(HasSubstr("is not sound"), HasSubstr("trial 11")));
  EXPECT_EQ(MustLoad(path()).studies.size(), 2U);
  EXPECT_THAT(FilesLeft(), testing::IsSupersetOf({"pool.db", "monday.db"}));
  EXPECT_THAT(FilesLeft(), testing::Not(testing::Contains(
                               testing::AnyOf(HasSubstr("replaced"), HasSubstr("unfinished")))));
}

}  // namespace
}  // namespace espalier
