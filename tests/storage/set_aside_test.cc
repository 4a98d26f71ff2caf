// Studies that do not load, taken out of a database.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/storage/change_source.h"
#include "tests/storage/raw_sql.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"
#include "tuner/storage/upkeep.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kTrialsOfEach = 5;

// Studies 1, 2 and 3, "one" to "three", of five trials each: 11 to 15, 21 to 25, 31 to 35.
class SetAside : public testing::Test {
 protected:
  SetAside() {
    auto storage = OpenSqliteStorage(path());
    EXPECT_TRUE(storage.ok()) << storage.status();
    for (const char* name : {"one", "two", "three"}) {
      const StudyId study(++studies_);
      std::vector<Change> changes = {StudyCreated{study, SpecForTests(name), Time{1}}};
      for (int number = 0; number < kTrialsOfEach; ++number) {
        const TrialId id(10 * study.value + 1 + number);
        changes.emplace_back(TrialCreated{id, study, number, {}, Time{2}});
        changes.emplace_back(TrialAttributeSet{id, false, "note", "1"});
        changes.emplace_back(ValueReported{id, {1, 0.5, 0, Time{3}, 0}});
      }
      EXPECT_TRUE((*storage)->Commit(changes).ok());
      for (const Change& change : changes) state_.Apply(change);
    }
  }

  std::string path() const { return folder_.File("tuner.db"); }
  std::string aside() const { return folder_.File("aside.db"); }

  static absl::StatusOr<TunerState> LoadFrom(const std::string& file) {
    auto storage = OpenSqliteStorage(file);
    if (!storage.ok()) return storage.status();
    return (*storage)->Load();
  }

  // As if its users had deleted them.
  void ExpectHoldsAllBut(const std::vector<std::int64_t>& studies) {
    for (const std::int64_t study : studies) {
      state_.Apply(StudyDeleted{StudyId(study), StudyId(3), TrialId(35)});
    }
    const auto state = LoadFrom(path());
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSame(*state, state_);
  }

  ScratchFolder folder_;
  TunerState state_;
  std::int64_t studies_ = 0;
};

TEST_F(SetAside, TheStartNamesTheRecordAndTheWayOut) {
  ExecuteRawIn(path(), "UPDATE trials SET parameters = '{' WHERE id = 22");
  EXPECT_THAT(std::string(LoadFrom(path()).status().message()),
              AllOf(HasSubstr("trial 22"), HasSubstr("tuner db set-aside"), HasSubstr("study 2")));
}

TEST_F(SetAside, TakesOutWhatDoesNotLoadAndNothingElse) {
  ExecuteRawIn(path(), "UPDATE trials SET parameters = '{' WHERE id = 22");
  const auto studies = SetAsideStudies(path(), aside());
  ASSERT_TRUE(studies.ok()) << studies.status();
  ASSERT_EQ(studies->size(), 1);
  EXPECT_EQ(studies->front().id, 2);
  EXPECT_EQ(studies->front().name, "two");
  EXPECT_EQ(studies->front().trials, kTrialsOfEach);
  EXPECT_THAT(studies->front().why, AllOf(HasSubstr("trial 22"), Not(HasSubstr("set-aside"))));
  ExpectHoldsAllBut({2});
}

TEST_F(SetAside, WhatIsAsideIsAsItWas) {
  ExecuteRawIn(path(), "UPDATE trials SET parameters = '{' WHERE id = 22");
  ASSERT_TRUE(SetAsideStudies(path(), aside()).ok());
  ExecuteRawIn(aside(), "UPDATE trials SET parameters = '{}' WHERE id = 22 AND parameters = '{'");
  for (const std::int64_t study : {1, 3}) {
    state_.Apply(StudyDeleted{StudyId(study), StudyId(3), TrialId(35)});
  }
  const auto state = LoadFrom(aside());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->studies.size(), 1);
  ExpectSame(*state, [this] {
    TunerState expected = state_;
    expected.last_study = StudyId(2);  // of those that are in the file
    expected.last_trial = TrialId(25);
    return expected;
  }());
}

TEST_F(SetAside, TakesOutSeveral) {
  ExecuteRawIn(path(),
               "UPDATE trials SET state = 'LOST' WHERE id = 11; "
               "UPDATE studies SET json = '[]' WHERE id = 3");
  const auto studies = SetAsideStudies(path(), aside());
  ASSERT_TRUE(studies.ok()) << studies.status();
  EXPECT_EQ(studies->size(), 2);
  ExpectHoldsAllBut({1, 3});
}

TEST_F(SetAside, NothingIsDoneWhereAllLoads) {
  const auto studies = SetAsideStudies(path(), aside());
  ASSERT_TRUE(studies.ok()) << studies.status();
  EXPECT_TRUE(studies->empty());
  EXPECT_FALSE(std::filesystem::exists(aside()));
  ExpectHoldsAllBut({});
}

TEST_F(SetAside, NothingIsDoneToWhatBelongsToNoStudy) {
  ExecuteRawIn(path(),
               "UPDATE trials SET parameters = '{' WHERE id = 22; "
               "UPDATE trial_values SET trial = 99 WHERE trial = 31");
  EXPECT_THAT(std::string(SetAsideStudies(path(), aside()).status().message()),
              AllOf(HasSubstr("99"), HasSubstr("there is no such trial")));
  EXPECT_FALSE(std::filesystem::exists(aside()));
  ExecuteRawIn(path(),
               "UPDATE trials SET parameters = '{}' WHERE id = 22; "
               "UPDATE trial_values SET trial = 31 WHERE trial = 99");
  ExpectHoldsAllBut({});
}

TEST_F(SetAside, LeavesADatabaseInUseAndAFileThatExistsAlone) {
  {
    const auto service = OpenSqliteStorage(path());
    EXPECT_THAT(std::string(SetAsideStudies(path(), aside()).status().message()),
                HasSubstr("another tuner service has it open"));
  }
  EXPECT_THAT(std::string(SetAsideStudies(path(), path()).status().message()),
              HasSubstr("exists already"));
}

}  // namespace
}  // namespace espalier
