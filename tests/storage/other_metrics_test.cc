// What trials that the pool runs tell of several metrics and of constraints, in a database and out.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/storage/change_source.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

TEST(OtherMetrics, AreThereAgain) {
  StudySpec spec = SpecForTests("two");
  spec.batch_mode = BatchMode::kFixed;
  spec.target.reset();
  spec.other_metrics = {"latency_ms"};
  spec.directions = {Direction::kMaximize, Direction::kMinimize};
  spec.wording = {};
  const std::vector<Change> changes = {
      StudyCreated{StudyId(1), spec, Time{1}}, TrialCreated{TrialId(1), StudyId(1), 0, {}, Time{3}},
      ValueReported{TrialId(1), {1, 0.5, 0, Time{7}, 0}, {{"latency_ms", 9}, {"loss", 2}}},
      ValueReported{TrialId(1), {2, 0.6, 0, Time{8}, 0}, {{"latency_ms", 7.5}}}};
  TunerState expected;
  for (const Change& change : changes) expected.Apply(change);
  ASSERT_EQ(expected.trials.at(TrialId(1)).other_values, std::vector<double>{7.5});
  const ScratchFolder folder;
  const auto opened = OpenSqliteStorage(folder.File("tuner.db"), /*read_only=*/false);
  ASSERT_TRUE(opened.ok()) << opened.status();
  Storage* const storage = opened->get();
  ASSERT_TRUE(storage->Commit(changes).ok());
  const auto state = storage->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->studies.at(StudyId(1)).spec.other_metrics, spec.other_metrics);
  const Trial& trial = state->trials.at(TrialId(1));
  EXPECT_EQ(trial.other_curves, expected.trials.at(TrialId(1)).other_curves);
  EXPECT_EQ(trial.other_values, std::vector<double>{7.5});
}

TEST(ConstraintsOfThePool, AreThereAgain) {
  StudySpec spec = SpecForTests("bounded");
  spec.constraints = {{"latency_ms", false, 20}, {"size", false, 0.1}};
  spec.wording = {};
  const std::vector<Change> changes = {
      StudyCreated{StudyId(1), spec, Time{1}},
      TrialCreated{TrialId(1), StudyId(1), 0, {}, Time{3}},
      TrialCreated{TrialId(2), StudyId(1), 1, {}, Time{3}},
      ValueReported{TrialId(1), {1, 0.5, 0, Time{7}, 0}, {{"latency_ms", 9}, {"size", 0.3}}},
      ValueReported{TrialId(1), {2, 0.6, 0, Time{8}, 0}, {{"latency_ms", 21.5}}},
      ValueReported{TrialId(1), {3, 0.7, 0, Time{9}, 0}, {}},
      TrialAttributeSet{TrialId(1), true, "constraints", "[-1]"},
      TrialAttributeSet{TrialId(2), true, "constraints", "[-1]"}};
  TunerState expected;
  for (const Change& change : changes) expected.Apply(change);
  ASSERT_EQ(*expected.trials.at(TrialId(1)).constraints, (std::vector<double>{1.5, 0.3 - 0.1}));
  ASSERT_TRUE(expected.trials.at(TrialId(2)).constraints->empty());
  const ScratchFolder folder;
  const auto opened = OpenSqliteStorage(folder.File("tuner.db"), /*read_only=*/false);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE((*opened)->Commit(changes).ok());
  const auto state = (*opened)->Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->studies.at(StudyId(1)).spec.constraints, spec.constraints);
  for (const std::int64_t id : {1, 2}) {
    EXPECT_EQ(*state->trials.at(TrialId(id)).constraints,
              *expected.trials.at(TrialId(id)).constraints);
  }
  EXPECT_EQ(state->tallies, expected.tallies);
}

}  // namespace
}  // namespace espalier
