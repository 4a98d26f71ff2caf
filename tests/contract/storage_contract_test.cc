// What every Storage does: the same suite for each of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/storage/change_source.h"
#include "tests/storage/same_state.h"
#include "tests/storage/scratch_folder.h"
#include "tuner/storage/storage.h"

namespace espalier {
namespace {

constexpr std::uint64_t kSeeds = 4;
constexpr int kRounds = 10;
constexpr int kLargestBatch = 15;

class StorageContract : public testing::TestWithParam<std::string> {
 protected:
  StorageContract() { Open(); }

  bool persistent() const { return GetParam() == "sqlite"; }
  Storage& storage() { return *storage_; }

  // What outlives the process is closed and opened again; the in-memory twin just goes on.
  void Reopen() {
    if (persistent()) Open();
  }

  // An empty storage.
  void StartAnew() {
    ++file_;
    Open();
  }

  void Commit(const std::vector<Change>& changes) {
    const absl::Status status = storage_->Commit(changes);
    ASSERT_TRUE(status.ok()) << status;
  }

  void ExpectLoads(const TunerState& expected) {
    const absl::StatusOr<TunerState> state = storage_->Load();
    ASSERT_TRUE(state.ok()) << state.status();
    ExpectSame(*state, expected);
  }

 private:
  void Open() {
    storage_.reset();  // one service at a time
    if (!persistent()) {
      storage_ = MakeMemoryStorage();
      return;
    }
    absl::StatusOr<std::unique_ptr<Storage>> opened =
        OpenSqliteStorage(folder_.File(std::to_string(file_) + ".db"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    storage_ = *std::move(opened);
  }

  ScratchFolder folder_;
  int file_ = 0;
  std::unique_ptr<Storage> storage_;
};

INSTANTIATE_TEST_SUITE_P(All, StorageContract, testing::Values("memory", "sqlite"),
                         [](const auto& tested) { return tested.param; });

TEST_P(StorageContract, IsEmptyAtFirst) {
  ExpectLoads(TunerState{});
  Reopen();
  ExpectLoads(TunerState{});
}

TEST_P(StorageContract, TakesNoChanges) {
  Commit({});
  ExpectLoads(TunerState{});
}

TEST_P(StorageContract, LoadsWhatRandomChangesMade) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StartAnew();
    ChangeSource source(seed);
    for (int round = 0; round < kRounds; ++round) {
      // Batches of every small size: group commit puts any number of changes together.
      for (int size = 1; size <= kLargestBatch; ++size) {
        std::vector<Change> batch;
        for (int i = 0; i < size; ++i) batch.push_back(source.Next());
        Commit(batch);
      }
      Reopen();
      ExpectLoads(source.state());
      if (HasFailure()) return;  // what follows would only repeat it
    }
    // A kind of change that was never drawn was not tested.
    for (std::size_t kind = 0; kind < ChangeSource::kKinds; ++kind) {
      EXPECT_GE(source.counts()[kind], 5) << "alternative " << kind << " of Change";
    }
  }
}

TEST_P(StorageContract, CommitsSlicesTogether) {
  ChangeSource source(11);
  int slices = 0;
  const auto next = [&]() -> absl::StatusOr<std::vector<Change>> {
    if (++slices > 5) return std::vector<Change>{};
    return std::vector<Change>{source.Next(), source.Next()};
  };
  const absl::Status status = storage().CommitSlices(next);
  ASSERT_TRUE(status.ok()) << status;
  ExpectLoads(source.state());
  Reopen();
  ExpectLoads(source.state());
}

TEST_P(StorageContract, CommitsNoSliceWhenOneFails) {
  ChangeSource source(12);
  for (int i = 0; i < 30; ++i) Commit({source.Next()});
  const TunerState before = source.state();
  int slices = 0;
  const absl::Status status = storage().CommitSlices([&]() -> absl::StatusOr<std::vector<Change>> {
    if (++slices > 5) return absl::InvalidArgumentError("no more of this");
    return std::vector<Change>{source.Next()};
  });
  EXPECT_EQ(status.message(), "no more of this");
  ExpectLoads(before);
  Commit({NodeRegistered{NodeId(1'000'000), "goes on"}});
}

TEST_P(StorageContract, LoadsTheSameTwice) {
  ChangeSource source(9);
  for (int i = 0; i < 100; ++i) Commit({source.Next()});
  ExpectLoads(source.state());
  ExpectLoads(source.state());
}

TEST_P(StorageContract, KeepsEveryBitOfDoubles) {
  using Limits = std::numeric_limits<double>;
  Commit({StudyCreated{StudyId(1), SpecForTests("s"), Time{5}},
          TrialCreated{TrialId(1), StudyId(1), 0, {{"x", -0.0}}, Time{6}}});
  std::vector<Change> reports;
  std::int64_t step = 0;
  for (const double value :
       {Limits::quiet_NaN(), -Limits::quiet_NaN(), std::bit_cast<double>(0x7ff8dead'beef0001ULL),
        Limits::signaling_NaN(), Limits::infinity(), -Limits::infinity(), 0.0, -0.0,
        Limits::denorm_min(), -Limits::denorm_min(), Limits::min(), Limits::max(), Limits::lowest(),
        5.0, 0.1, 9007199254740992.0, 9007199254740994.0, 1e308}) {
    ++step;
    reports.emplace_back(
        ValueReported{TrialId(1), {step, value, value, Time{7}, 0}, {{"loss", value}, {"n", 1}}});
  }
  Commit(reports);
  Reopen();
  const absl::StatusOr<TunerState> state = storage().Load();
  ASSERT_TRUE(state.ok()) << state.status();
  const std::vector<IntermediateValue>& values = state->trials.at(TrialId(1)).values;
  ASSERT_EQ(values.size(), reports.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = std::get<ValueReported>(reports[i]).value.value;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(values[i].value), std::bit_cast<std::uint64_t>(expected))
        << expected;
    const double extra = state->trials.at(TrialId(1)).extra.at(values[i].step).at("loss");
    EXPECT_EQ(std::bit_cast<std::uint64_t>(extra), std::bit_cast<std::uint64_t>(expected));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(values[i].progress),
              std::bit_cast<std::uint64_t>(expected))
        << expected;
  }
  const double zero = std::get<double>(state->trials.at(TrialId(1)).parameters[0].value);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(zero), std::bit_cast<std::uint64_t>(-0.0));
}

TEST_P(StorageContract, TellsNoFinalValueFromNaN) {
  const auto end = [](std::int64_t id, std::optional<double> value) {
    return TrialStateChanged{TrialId(id), TrialState::kFail, Time{8}, "", value, ""};
  };
  Commit({StudyCreated{StudyId(1), SpecForTests("s"), Time{5}},
          TrialCreated{TrialId(1), StudyId(1), 0, {}, Time{6}},
          TrialCreated{TrialId(2), StudyId(1), 1, {}, Time{6}}, end(1, std::nullopt),
          end(2, std::numeric_limits<double>::quiet_NaN())});
  Reopen();
  const absl::StatusOr<TunerState> state = storage().Load();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->trials.at(TrialId(1)).value.has_value());
  ASSERT_TRUE(state->trials.at(TrialId(2)).value.has_value());
  EXPECT_TRUE(std::isnan(*state->trials.at(TrialId(2)).value));
}

TEST_P(StorageContract, KeepsValuesThatComeOutOfOrderAscending) {
  Commit({StudyCreated{StudyId(1), SpecForTests("s"), Time{5}},
          TrialCreated{TrialId(1), StudyId(1), 0, {}, Time{6}},
          ValueReported{TrialId(1), {5, 0.5, 0, Time{7}, 0}},
          ValueReported{TrialId(1), {2, 0.2, 0, Time{8}, 0}}});
  Commit({ValueReported{TrialId(1), {3, 0.3, 0, Time{9}, 0}}});
  Reopen();
  const absl::StatusOr<TunerState> state = storage().Load();
  ASSERT_TRUE(state.ok()) << state.status();
  std::vector<std::int64_t> steps;
  for (const IntermediateValue& value : state->trials.at(TrialId(1)).values) {
    steps.push_back(value.step);
  }
  EXPECT_THAT(steps, testing::ElementsAre(2, 3, 5));
}

TEST_P(StorageContract, KeepsTheNewestEventsOfNodes) {
  constexpr auto kMost = static_cast<std::int64_t>(kNodeEventsKept);
  std::vector<Change> changes = {NodeRegistered{NodeId(1), "oak"}};
  for (std::int64_t i = 1; i <= kMost + 3; ++i) {
    NodeSeen event{.id = NodeId(1), .up = i % 2 == 1};
    event.terms.since = Time{i};
    changes.emplace_back(event);
  }
  Commit(changes);
  Reopen();
  const absl::StatusOr<TunerState> state = storage().Load();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ(state->node_events.size(), kNodeEventsKept);
  EXPECT_EQ(state->node_events.front().terms.since, Time{4});
  EXPECT_EQ(state->node_events.back().terms.since, Time{kMost + 3});
}

TEST_P(StorageContract, KeepsParametersOfAnySize) {
  Parameters many;
  for (int i = 0; i < 2000; ++i) many.push_back({"p" + std::to_string(i), std::int64_t{i}});
  const Parameters large = {{"text", std::string(2 << 20, 't')}};
  TunerState expected;
  const std::vector<Change> changes = {StudyCreated{StudyId(1), SpecForTests("s"), Time{5}},
                                       TrialCreated{TrialId(1), StudyId(1), 0, many, Time{6}},
                                       TrialCreated{TrialId(2), StudyId(1), 1, large, Time{6}}};
  for (const Change& change : changes) expected.Apply(change);
  Commit(changes);
  Reopen();
  ExpectLoads(expected);
}

TEST_P(StorageContract, KeepsLimitsThatWereChangedBesideTheStudysText) {
  TunerState expected;
  const std::vector<Change> changes = {StudyCreated{StudyId(7), SpecForTests("s"), Time{5}},
                                       StudyLimitsChanged{StudyId(7), 99, 1234.5}};
  for (const Change& change : changes) expected.Apply(change);
  Commit(changes);
  Reopen();
  ExpectLoads(expected);
  EXPECT_EQ(expected.studies.at(StudyId(7)).spec.max_trials, 99);
}

}  // namespace
}  // namespace espalier
