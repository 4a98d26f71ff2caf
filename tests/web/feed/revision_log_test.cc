#include "tuner/web/feed/revision_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kMany = 1000;

// A state and a log that has heard of every change of it.
class RevisionLogTest : public testing::Test {
 protected:
  void Commit(const std::vector<Change>& changes) {
    for (const Change& change : changes) state_.Apply(change);
    log_.Take(changes, state_);
  }
  void CreateStudy(std::int64_t id) {
    StudySpec spec;
    spec.name = "study " + std::to_string(id);
    Commit({StudyCreated{StudyId(id), spec, Time{1}}});
  }
  void CreateTrial(std::int64_t id, std::int64_t study) {
    const auto number = std::ssize(state_.studies.at(StudyId(study)).trials);
    Commit({TrialCreated{TrialId(id), StudyId(study), number, {}, Time{1}}});
  }
  static Change Report(std::int64_t trial, std::int64_t step, double value) {
    return ValueReported{.id = TrialId(trial),
                         .value = {.step = step, .value = value, .at = Time{2}}};
  }
  std::vector<std::int64_t> TrialsSince(std::int64_t revision) const {
    std::vector<std::int64_t> ids;
    for (const auto& trial : log_.Since(revision, std::nullopt, kMany).trials) {
      ids.push_back(trial.id.value);
    }
    return ids;
  }

  TunerState state_;
  RevisionLog log_{"1f", 8};
};

TEST_F(RevisionLogTest, TellsEachChangedTrialOnce) {
  CreateStudy(1);
  CreateTrial(1, 1);
  CreateTrial(2, 1);
  const std::int64_t seen = log_.revision();
  EXPECT_THAT(TrialsSince(seen), IsEmpty());
  Commit({Report(2, 1, 0.5), Report(2, 2, 0.4), Report(1, 1, 0.3)});
  Commit({Report(2, 3, 0.3)});
  EXPECT_THAT(TrialsSince(seen), ElementsAre(1, 2));
  const auto news = log_.Since(seen, std::nullopt, kMany);
  EXPECT_EQ(news.trials.back(), (RevisionLog::ChangedTrial{TrialId(2), StudyId(1), 1}));
  EXPECT_THAT(news.studies, ElementsAre(StudyId(1)));
  EXPECT_FALSE(news.pool || news.decisions || news.more);
}

TEST_F(RevisionLogTest, WhatNoPageShowsIsNoNews) {
  CreateStudy(1);
  CreateTrial(1, 1);
  const std::int64_t seen = log_.revision();
  Commit({RankValueTold{TrialId(1), 1, 0, 0.5}, ReplicaIdsReserved{100}});
  EXPECT_EQ(log_.revision(), seen);
}

TEST_F(RevisionLogTest, TellsOfThePoolAndOfDecisions) {
  CreateStudy(1);
  CreateTrial(1, 1);
  std::int64_t seen = log_.revision();
  Commit({NodeRegistered{NodeId(1), "oak"}});
  EXPECT_TRUE(log_.Since(seen, std::nullopt, kMany).pool);
  seen = log_.revision();
  Commit({DecisionMade{StudyId(1), {.at = Time{2}, .reason = "because"}}});
  EXPECT_TRUE(log_.Since(seen, std::nullopt, kMany).decisions);
  EXPECT_FALSE(log_.Since(seen, std::nullopt, kMany).pool);
  EXPECT_FALSE(log_.Since(seen, StudyId(2), kMany).decisions);
  seen = log_.revision();
  Commit({SlotsHeldChanged{TrialId(1), Time{2}, {{NodeId(1), 0}}}});
  EXPECT_TRUE(log_.Since(seen, StudyId(2), kMany).pool);
  seen = log_.revision();
  log_.TakePool();
  EXPECT_TRUE(log_.Since(seen, std::nullopt, kMany).pool);
}

TEST_F(RevisionLogTest, TellsOfOneStudyAlone) {
  CreateStudy(1);
  CreateStudy(2);
  CreateTrial(1, 1);
  CreateTrial(2, 2);
  const auto news = log_.Since(0, StudyId(2), kMany);
  EXPECT_THAT(news.studies, ElementsAre(StudyId(2)));
  EXPECT_THAT(news.trials, ElementsAre(RevisionLog::ChangedTrial{TrialId(2), StudyId(2), 0}));
}

TEST_F(RevisionLogTest, SaysWhereItHasForgotten) {
  CreateStudy(1);
  for (std::int64_t id = 1; id <= 8; ++id) CreateTrial(id, 1);
  EXPECT_FALSE(log_.Since(0, std::nullopt, kMany).complete);
  EXPECT_TRUE(log_.Since(1, std::nullopt, kMany).complete);
  EXPECT_FALSE(log_.Since(log_.revision() + 1, std::nullopt, kMany).complete);
}

TEST_F(RevisionLogTest, AFrameEndsBeforeTheTrialThatIsOneTooMany) {
  CreateStudy(1);
  for (std::int64_t id = 1; id <= 5; ++id) CreateTrial(id, 1);
  std::int64_t at = 0;
  std::vector<std::int64_t> told;
  for (const bool more : {true, true, false}) {
    const auto news = log_.Since(at, std::nullopt, 2);
    EXPECT_EQ(news.more, more);
    for (const auto& trial : news.trials) told.push_back(trial.id.value);
    at = news.revision;
  }
  EXPECT_THAT(told, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(at, log_.revision());
}

TEST_F(RevisionLogTest, GivesTheNewestValuesOfTheNews) {
  CreateStudy(1);
  CreateTrial(1, 1);
  const std::int64_t seen = log_.revision();
  Commit({Report(1, 1, 0.5), Report(1, 2, 0.4)});
  const std::int64_t middle = log_.revision();
  Commit({Report(1, 3, 0.3)});
  const auto steps = [](const RevisionLog::Values& values) {
    std::vector<std::int64_t> all;
    for (const auto& told : values.values) all.push_back(told.value.step);
    return all;
  };
  const std::int64_t head = log_.revision();
  EXPECT_THAT(steps(log_.ValuesIn(seen, head, std::nullopt, kMany)), ElementsAre(1, 2, 3));
  EXPECT_THAT(steps(log_.ValuesIn(seen, middle, std::nullopt, kMany)), ElementsAre(1, 2));
  EXPECT_THAT(steps(log_.ValuesIn(middle, head, std::nullopt, kMany)), ElementsAre(3));
  EXPECT_THAT(steps(log_.ValuesIn(seen, head, StudyId(2), kMany)), IsEmpty());
  const auto newest = log_.ValuesIn(seen, head, std::nullopt, 2);
  EXPECT_TRUE(newest.more);
  EXPECT_THAT(steps(newest), ElementsAre(2, 3));
}

TEST_F(RevisionLogTest, SaysWhereValuesAreForgotten) {
  CreateStudy(1);
  CreateTrial(1, 1);
  const std::int64_t seen = log_.revision();
  std::vector<Change> reports;
  for (std::size_t i = 0; i <= kMaxLogValues; ++i) {
    reports.push_back(Report(1, static_cast<std::int64_t>(i) + 1, 1));
  }
  Commit(reports);
  EXPECT_TRUE(log_.ValuesIn(seen, log_.revision(), std::nullopt, 2 * kMaxLogValues).more);
  const std::int64_t after = log_.revision();
  Commit({Report(1, 100'000, 1)});
  EXPECT_FALSE(log_.ValuesIn(after, log_.revision(), std::nullopt, kMany).more);
}

TEST_F(RevisionLogTest, WakesWhoeverWaits) {
  int woken = 0;
  log_.WakeBy([&woken] { ++woken; });
  CreateStudy(1);
  Commit({ReplicaIdsReserved{100}});
  EXPECT_EQ(woken, 1);
  log_.WakeBy(nullptr);
  CreateTrial(1, 1);
  EXPECT_EQ(woken, 1);
}

// A page: it reads again what it is told has changed, and all where the log has forgotten.
class Reader {
 public:
  void Follow(const RevisionLog& log, const TunerState& state, std::size_t most_trials) {
    const RevisionLog::News news = log.Since(at_, std::nullopt, most_trials);
    at_ = news.revision;
    if (!news.complete) {
      resynced_ = true;
      trials = state.trials;
      studies.clear();
      for (const auto& [id, study] : state.studies) studies[id] = study.state;
      return;
    }
    for (const StudyId id : news.studies) {
      const auto study = state.studies.find(id);
      if (study != state.studies.end()) {
        studies[id] = study->second.state;
        continue;
      }
      studies.erase(id);
      std::erase_if(trials, [id](const auto& trial) { return trial.second.study == id; });
    }
    for (const RevisionLog::ChangedTrial& changed : news.trials) {
      const auto trial = state.trials.find(changed.id);
      if (trial == state.trials.end()) continue;
      EXPECT_EQ(trial->second.number, changed.number);
      trials.insert_or_assign(changed.id, trial->second);
    }
  }
  bool resynced() const { return resynced_; }
  bool at_head(const RevisionLog& log) const { return at_ == log.revision(); }

  std::map<TrialId, Trial> trials;
  std::map<StudyId, StudyState> studies;

 private:
  std::int64_t at_ = 0;
  bool resynced_ = false;
};

TEST_F(RevisionLogTest, AnyFramesAndResyncsEndInTheStateOfAFullRead) {
  Random random(7);
  CreateStudy(1);
  CreateStudy(2);
  std::int64_t studies = 2;
  std::int64_t trials = 0;
  std::map<TrialId, std::int64_t> steps;
  std::vector<Reader> readers(3);
  for (int i = 0; i < 1000; ++i) {
    std::vector<Change> changes;
    const std::uint64_t kind = random.Below(10);
    std::vector<TrialId> living;
    for (const auto& [id, trial] : state_.trials) living.push_back(id);
    if (kind == 0 && state_.studies.size() > 1) {
      const StudyId gone = state_.studies.begin()->first;
      changes.emplace_back(
          StudyDeleted{gone, StudyId(studies), TrialId(std::max<std::int64_t>(trials, 1))});
    } else if (kind == 1 || state_.studies.empty()) {
      StudySpec spec;
      spec.name = "study " + std::to_string(++studies);
      changes.emplace_back(StudyCreated{StudyId(studies), spec, Time{1}});
    } else if (kind <= 4 || living.empty()) {
      const auto& [id, study] = *state_.studies.rbegin();
      changes.emplace_back(
          TrialCreated{TrialId(++trials), id, std::ssize(study.trials), {}, Time{1}});
    } else {
      for (std::uint64_t k = 0; k < 1 + random.Below(4); ++k) {
        const TrialId id = living[random.Below(living.size())];
        changes.push_back(Report(id.value, ++steps[id], random.Uniform()));
        changes.emplace_back(TrialPinned{id, static_cast<int>(random.Below(5))});
      }
    }
    Commit(changes);
    for (Reader& reader : readers) {
      if (random.Below(6) != 0) continue;
      reader.Follow(log_, state_, 1 + random.Below(3));
    }
  }
  for (Reader& reader : readers) {
    while (!reader.at_head(log_)) reader.Follow(log_, state_, 2);
    EXPECT_TRUE(reader.resynced());
    EXPECT_EQ(reader.trials, state_.trials);
    std::map<StudyId, StudyState> all;
    for (const auto& [id, study] : state_.studies) all[id] = study.state;
    EXPECT_EQ(reader.studies, all);
  }
}

}  // namespace
}  // namespace espalier
