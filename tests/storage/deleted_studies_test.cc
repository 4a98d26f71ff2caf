// Deleting a study takes no time; what it leaves goes later, and nobody sees it meanwhile.

#include "tuner/storage/deleted_studies.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/storage/change_source.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

constexpr int kTrials = 40;
constexpr int kValues = 50;  // a trial: all of them take several turns of the clean-up
static_assert(std::int64_t{kTrials} * kValues > 3 * kRowsRemovedAtOnce);

std::vector<Change> FilledStudy(StudyId id, const std::string& name, std::int64_t first_trial) {
  std::vector<Change> changes = {
      StudyCreated{id, SpecForTests(name), Time{1}},
      StudyAttributeSet{id, false, "note", "\"kept\""}, SuggestionAdded{id, {"x", "d", "k"}},
      DecisionMade{id, {Time{2}, -1, DecisionKind::kStudy, 0, 0, "began"}}};
  TrainingFigures figures;
  figures[Figure::kGoodput] = 1;
  for (int number = 0; number < kTrials; ++number) {
    const TrialId trial(first_trial + number);
    changes.emplace_back(TrialCreated{trial, id, number, {}, Time{3}});
    changes.emplace_back(ParameterSuggested{trial, 0, {0, 0.5}});
    changes.emplace_back(TrialAttributeSet{trial, true, "a", "1"});
    changes.emplace_back(SlotsHeldChanged{trial, Time{4}, {{NodeId(1), 0}}});
    changes.emplace_back(FiguresRecorded{trial, figures});
    changes.emplace_back(ResizeMeasured{trial, {}});
    changes.emplace_back(CheckpointCopySet{trial, {NodeId(1), {7, "step-7.pt", "f", Time{4}}}});
    for (int step = 0; step < kValues; ++step) {
      changes.emplace_back(ValueReported{trial, {step, 1.0, 0, Time{5}, 0}});
    }
    changes.emplace_back(ValueReported{trial, {kValues, 1.0, 0, Time{5}, 0}, {{"loss", 0.5}}});
    changes.emplace_back(TrialTold{trial, TrialState::kComplete, {1, 2}, Time{4}, Time{6}});
    changes.emplace_back(RankValueTold{trial, 1, 0, 0.5});
  }
  return changes;
}

class DeletedStudiesTest : public testing::Test {
 protected:
  DeletedStudiesTest() {
    Open();
    Commit({NodeRegistered{NodeId(1), "n"}});
    Commit(FilledStudy(StudyId(1), "gone", 1));
    Commit(FilledStudy(StudyId(2), "kept", 1 + kTrials));
  }

  std::string path() const { return folder_.File("tuner.db"); }

  void Open() {
    storage_.reset();
    absl::StatusOr<std::unique_ptr<Storage>> opened = OpenSqliteStorage(path());
    ASSERT_TRUE(opened.ok()) << opened.status();
    storage_ = *std::move(opened);
  }
  void Commit(const std::vector<Change>& changes) {
    ASSERT_TRUE(storage_->Commit(changes).ok());
    for (const Change& change : changes) state_.Apply(change);
  }
  void Delete() { Commit({StudyDeleted{StudyId(1), state_.last_study, state_.last_trial}}); }

  void ExpectLoads() {
    const absl::StatusOr<TunerState> state = storage_->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSame(*state, state_);
    const auto reader = OpenSqliteStorage(path(), /*read_only=*/true);
    ASSERT_TRUE(reader.ok()) << reader.status();
    ExpectSame(*(*reader)->Load(), state_);
  }

  std::int64_t RowsOf(const std::string& table, const std::string& where) const {
    sqlite3* connection = nullptr;
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_open(path().c_str(), &connection), SQLITE_OK);
    const std::string sql = "SELECT count(*) FROM " + table + " WHERE " + where;
    EXPECT_EQ(sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const std::int64_t rows = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return rows;
  }
  bool CleanUp() {
    const absl::StatusOr<bool> more = storage_->CleanUp();
    EXPECT_TRUE(more.ok()) << more.status();
    return more.ok() && *more;
  }

  ScratchFolder folder_;
  std::unique_ptr<Storage> storage_;
  TunerState state_;
};

TEST_F(DeletedStudiesTest, AreGoneAtOnceAndTheirRowsByAndBy) {
  Delete();
  EXPECT_EQ(RowsOf("trials", "study = 1"), kTrials) << "the deletion itself is short";
  ExpectLoads();
  std::int64_t left = RowsOf("trial_values", "trial <= 40");
  while (CleanUp()) {
    const std::int64_t now = RowsOf("trial_values", "trial <= 40");
    EXPECT_LE(left - now, kRowsRemovedAtOnce);
    left = now;
    ExpectLoads();
  }
  for (const char* table :
       {"trial_values", "extra_figures", "spans", "resizes", "figures", "trial_attributes",
        "suggested", "other_values", "checkpoint_copies", "rank_values"}) {
    EXPECT_EQ(RowsOf(table, "trial <= 40"), 0) << table;
    EXPECT_GT(RowsOf(table, "trial > 40"), 0) << table;
  }
  for (const char* table : {"trials", "decisions", "study_attributes", "suggestions"}) {
    EXPECT_EQ(RowsOf(table, "study = 1"), 0) << table;
    EXPECT_GT(RowsOf(table, "study = 2"), 0) << table;
  }
  EXPECT_EQ(RowsOf("studies", "id = 1"), 0);
  EXPECT_EQ(RowsOf("deleted_studies", "true"), 0);
  ExpectLoads();
}

TEST_F(DeletedStudiesTest, StayAwayAfterARestartInBetween) {
  Delete();
  for (bool more = true; more;) {
    Open();
    ExpectLoads();
    more = CleanUp();
  }
  Open();
  ExpectLoads();
  EXPECT_FALSE(CleanUp());
}

TEST_F(DeletedStudiesTest, LeaveTheirNameFreeAndTheirIdsUsed) {
  Delete();
  Commit(FilledStudy(StudyId(3), "gone", state_.last_trial.value + 1));
  ExpectLoads();
  EXPECT_EQ(state_.FindStudy("gone")->id, StudyId(3));
  while (CleanUp()) {
  }
  ExpectLoads();
  Commit({StudyDeleted{StudyId(3), state_.last_study, state_.last_trial},
          StudyDeleted{StudyId(2), state_.last_study, state_.last_trial}});
  ExpectLoads();
  while (CleanUp()) {
  }
  ExpectLoads();
  EXPECT_EQ(RowsOf("trials", "true"), 0);
}

TEST_F(DeletedStudiesTest, AreNotRemovedByAReader) {
  const auto reader = OpenSqliteStorage(path(), /*read_only=*/true);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->CleanUp().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace espalier
