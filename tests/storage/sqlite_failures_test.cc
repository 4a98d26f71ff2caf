// Commits that fail, and databases that make no sense.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/storage/change_source.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SqliteFailures : public testing::Test {
 protected:
  SqliteFailures() { Reopen(); }

  void Reopen() {
    storage_.reset();
    absl::StatusOr<std::unique_ptr<Storage>> opened = OpenSqliteStorage(Database());
    ASSERT_TRUE(opened.ok()) << opened.status();
    storage_ = *std::move(opened);
  }

  std::string Database() const { return folder_.File("tuner.db"); }

  void CommitSome(ChangeSource& source, int count) {
    std::vector<Change> changes;
    for (int i = 0; i < count; ++i) changes.push_back(source.Next());
    const absl::Status status = storage_->Commit(changes);
    ASSERT_TRUE(status.ok()) << status;
  }

  void ExpectLoads(const TunerState& expected) {
    const absl::StatusOr<TunerState> state = storage_->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSame(*state, expected);
  }

  // What a broken program or a hand did to the file while no service had it.
  std::string LoadErrorAfter(const std::string& sql) {
    storage_.reset();
    sqlite3* connection = nullptr;
    EXPECT_EQ(sqlite3_open(Database().c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
    Reopen();
    const absl::Status status = storage_->Load().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Database()));
    return std::string(status.message());
  }

  ScratchFolder folder_;
  std::unique_ptr<Storage> storage_;
};

// No file of this process grows beyond `bytes`: to SQLite the same as a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    before_ = signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &limit_), 0);
    const rlimit lower{bytes, limit_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &lower), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit_), 0);
    signal(SIGXFSZ, before_);
  }

 private:
  rlimit limit_{};
  void (*before_)(int) = nullptr;
};

std::vector<Change> StudyAndTrial() {
  return {StudyCreated{StudyId(1), SpecForTests("s"), Time{5}},
          TrialCreated{TrialId(1), StudyId(1), 0, {{"lr", 0.1}}, Time{6}}};
}

TEST_F(SqliteFailures, LeaveNothingOfABatchWithAChangeThatDoesNotFit) {
  ChangeSource source(1);
  while (source.state().nodes.empty()) CommitSome(source, 60);
  const IntermediateValue value{1, 0.5, 0, Time{1}, 0};
  const TrialId nobody(1'000'000);
  const std::vector<Change> misfits = {
      ValueReported{nobody, value},
      CheckpointRecorded{nobody, "/c"},
      CheckpointCopySet{nobody, {source.state().nodes.begin()->first, {}}},
      SlotsHeldChanged{nobody, Time{1}, {{NodeId(1), 0}}},
      StudyLimitsChanged{StudyId(1'000'000), 1, 1},
      DecisionMade{StudyId(1'000'000), {}},
      NodeRegistered{source.state().nodes.begin()->first, "twice"},
  };
  for (const Change& misfit : misfits) {
    SCOPED_TRACE(misfit.index());
    const std::vector<Change> batch = {NodeRegistered{NodeId(5000), "lost"},
                                       ReplicaIdsReserved{1'000'000'000}, misfit};
    EXPECT_FALSE(storage_->Commit(batch).ok());
    ExpectLoads(source.state());
  }
  CommitSome(source, 60);
  Reopen();
  ExpectLoads(source.state());
}

TEST_F(SqliteFailures, LeaveNothingWhenTheDiskIsFullAndGoOnWhenItIsNot) {
  ChangeSource source(2);
  CommitSome(source, 60);
  {
    const std::vector<Change> large(
        1, NodeRegistered{NodeId(5000), std::string(std::size_t{4} << 20, 'x')});
    const FileSizeLimit limit(std::size_t{1} << 20);
    const absl::Status status = storage_->Commit(large);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(Database()), HasSubstr("no space left")));
    ExpectLoads(source.state());
  }
  CommitSome(source, 60);
  Reopen();
  ExpectLoads(source.state());
}

TEST_F(SqliteFailures, RefuseAStudyThatCouldNotBeReadBack) {
  StudySpec without_command = SpecForTests("s");
  without_command.command.clear();
  StudySpec elsewhere = SpecForTests("s");
  elsewhere.directory = "relative/folder";
  for (const StudySpec& spec : {without_command, elsewhere}) {
    const std::vector<Change> changes = {StudyCreated{StudyId(1), spec, Time{5}}};
    const absl::Status status = storage_->Commit(changes);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"s\""));
  }
  ExpectLoads(TunerState{});
}

TEST_F(SqliteFailures, NameAnUnknownState) {
  ASSERT_TRUE(storage_->Commit(StudyAndTrial()).ok());
  EXPECT_THAT(LoadErrorAfter("UPDATE trials SET state = 'DREAMING'"),
              AllOf(HasSubstr("trial 1"), HasSubstr("\"DREAMING\"")));
}

TEST_F(SqliteFailures, NameRowsOfATrialThatIsMissing) {
  ASSERT_TRUE(storage_->Commit(StudyAndTrial()).ok());
  EXPECT_THAT(LoadErrorAfter("INSERT INTO trial_values VALUES (77, 1, 0.5, 0, 0, 0, 0, 0)"),
              AllOf(HasSubstr("trial 77"), HasSubstr("no such trial")));
}

TEST_F(SqliteFailures, NameFiguresThatAreNotThoseOfADecision) {
  ASSERT_TRUE(storage_->Commit(StudyAndTrial()).ok());
  const std::vector<Change> decision = {DecisionMade{StudyId(1), {}}};
  ASSERT_TRUE(storage_->Commit(decision).ok());
  for (const char* figures : {"{", "[]", "{\"promise\": \"high\"}"}) {
    EXPECT_THAT(LoadErrorAfter(absl::StrCat("UPDATE decisions SET figures = '", figures, "'")),
                AllOf(HasSubstr("decision of study 1"), HasSubstr(figures)));
  }
}

TEST_F(SqliteFailures, NameATrialWhoseNumberIsNotNext) {
  ASSERT_TRUE(storage_->Commit(StudyAndTrial()).ok());
  EXPECT_THAT(LoadErrorAfter("UPDATE trials SET number = 3"),
              AllOf(HasSubstr("number 3"), HasSubstr("not the next")));
}

TEST_F(SqliteFailures, NameParametersThatAreNotJson) {
  ASSERT_TRUE(storage_->Commit(StudyAndTrial()).ok());
  EXPECT_THAT(LoadErrorAfter("UPDATE trials SET parameters = '{'"), HasSubstr("malformed JSON"));
}

}  // namespace
}  // namespace espalier
