#include "adapters/nni/service/event_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "adapters/nni/service/names.h"

namespace espalier::nni {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr StudyId kStudy(1);

// A state and a feed that has heard of every change of it.
class EventFeedTest : public testing::Test {
 protected:
  EventFeedTest() {
    StudySpec spec;
    spec.name = "nni-e";
    spec.kind = StudyKind::kQueued;
    spec.sampler = {kQueueSampler, {}};
    Commit({StudyCreated{kStudy, spec, Time{1}}});
  }

  void Commit(const std::vector<Change>& changes) {
    for (const Change& change : changes) state_.Apply(change);
    feed_.Take(changes, state_);
  }
  void Create(std::int64_t id, const std::string& name) {
    Commit({TrialCreated{TrialId(id), kStudy, id - 1, {}, Time{1}},
            TrialAttributeSet{TrialId(id), true, kTrial, "\"" + name + "\""}});
  }
  void SetState(std::int64_t id, TrialState state) {
    Commit({TrialStateChanged{TrialId(id), state, Time{2}, "", std::nullopt, ""}});
  }
  void Report(std::int64_t id, const std::string& metric) {
    Commit({TrialAttributeSet{TrialId(id), true, kMetric + metric, "{}"}});
  }
  std::vector<TrialId> ChangedSince(std::int64_t revision) {
    std::vector<TrialId> trials;
    for (const auto& news : feed_.Since(kStudy, revision).trials) trials.push_back(news.trial);
    return trials;
  }
  std::int64_t Now() { return feed_.Since(kStudy, 0).revision; }

  TunerState state_;
  EventFeed feed_{"life"};
};

TEST_F(EventFeedTest, TellsWhatHasChangedInTheOrderOfTheLastChange) {
  Create(1, "a");
  Create(2, "b");
  EXPECT_THAT(ChangedSince(0), ElementsAre(TrialId(1), TrialId(2)));
  const std::int64_t seen = Now();
  EXPECT_THAT(ChangedSince(seen), IsEmpty());
  SetState(1, TrialState::kRunning);
  EXPECT_THAT(ChangedSince(seen), ElementsAre(TrialId(1)));
  EXPECT_THAT(ChangedSince(0), ElementsAre(TrialId(2), TrialId(1)));
}

TEST_F(EventFeedTest, TellsEachReportOnce) {
  Create(1, "a");
  SetState(1, TrialState::kRunning);
  Report(1, "PERIODICAL:0");
  const std::int64_t seen = Now();
  Report(1, "PERIODICAL:1");
  Commit({ValueReported{TrialId(1), {2, 0.5, 0, Time{3}, 0}}});
  const EventFeed::News news = feed_.Since(kStudy, seen);
  ASSERT_EQ(news.trials.size(), 1U);
  EXPECT_THAT(news.trials[0].metrics, ElementsAre("nni:metric:PERIODICAL:1"));
  EXPECT_THAT(news.trials[0].steps, ElementsAre(2));
  EXPECT_TRUE(news.trials[0].by_channel);
  EXPECT_FALSE(news.trials[0].ended);
  EXPECT_EQ(feed_.WholeOf(kStudy, TrialId(1)).metrics.size(), 2U);
}

TEST_F(EventFeedTest, TheEndIsNewOnce) {
  Create(1, "a");
  SetState(1, TrialState::kRunning);
  const std::int64_t before = Now();
  SetState(1, TrialState::kComplete);
  EXPECT_TRUE(feed_.Since(kStudy, before).trials.at(0).ended);
  const std::int64_t after = Now();
  Commit({SlotsHeldChanged{TrialId(1), Time{4}, {}}});
  EXPECT_FALSE(feed_.Since(kStudy, after).trials.at(0).ended);
}

TEST_F(EventFeedTest, AnAnswerHoldsSoManyTrialsAndTheNextGoesOn) {
  const auto trials = static_cast<std::int64_t>(kMaxTrialsTold) + 3;
  for (std::int64_t id = 1; id <= trials; ++id) Create(id, "t" + std::to_string(id));
  const EventFeed::News first = feed_.Since(kStudy, 0);
  EXPECT_EQ(first.trials.size(), kMaxTrialsTold);
  EXPECT_EQ(first.trials.back().trial, TrialId(trials - 3));
  EXPECT_THAT(ChangedSince(first.revision),
              ElementsAre(TrialId(trials - 2), TrialId(trials - 1), TrialId(trials)));
}

TEST_F(EventFeedTest, ACursorOfAnotherLifeIsTheBeginning) {
  EXPECT_EQ(feed_.Cursor(7), "life:7");
  EXPECT_EQ(feed_.RevisionOf("life:7"), 7);
  for (const char* cursor : {"", "7", "other:7", "life:", "life:7x", "life:-1", "life:7:1"}) {
    EXPECT_EQ(feed_.RevisionOf(cursor), 0) << cursor;
  }
}

TEST_F(EventFeedTest, WhatWasStoredIsTheFirstNews) {
  Create(1, "a");
  SetState(1, TrialState::kRunning);
  for (const char* metric : {"PERIODICAL:2", "PERIODICAL:10", "FINAL"}) Report(1, metric);
  SetState(1, TrialState::kComplete);
  EventFeed next("next");
  next.Load(state_);
  const EventFeed::News news = next.Since(kStudy, 0);
  ASSERT_EQ(news.trials.size(), 1U);
  EXPECT_THAT(news.trials[0].metrics, ElementsAre("nni:metric:PERIODICAL:2",
                                                  "nni:metric:PERIODICAL:10", "nni:metric:FINAL"));
  EXPECT_TRUE(news.trials[0].ended);
  EXPECT_EQ(next.Find(kStudy, "a"), TrialId(1));
}

TEST_F(EventFeedTest, OtherStudiesAreNotItsBusiness) {
  StudySpec spec;
  spec.name = "nni-drawn";
  Commit({StudyCreated{StudyId(2), spec, Time{1}},
          TrialCreated{TrialId(1), StudyId(2), 0, {}, Time{1}},
          TrialAttributeSet{TrialId(1), true, kTrial, "\"a\""}});
  EXPECT_EQ(feed_.Find(StudyId(2), "a"), TrialId{});
  // Enqueued by somebody else: it has no id of NNI's.
  Commit({TrialCreated{TrialId(2), kStudy, 0, {}, Time{1}}});
  EXPECT_THAT(ChangedSince(0), IsEmpty());
}

TEST_F(EventFeedTest, WhoWaitsIsWokenByNewsAndByTheEnd) {
  Create(1, "a");
  const std::int64_t seen = Now();
  std::thread waits([&] { feed_.Await(kStudy, seen, 1000); });
  SetState(1, TrialState::kRunning);
  waits.join();
  feed_.Await(kStudy, seen, 1000);  // there are news already
  std::thread closes([&] { feed_.Close(); });
  feed_.Await(kStudy, Now(), 1000);
  closes.join();
}

TEST_F(EventFeedTest, ADeletedStudyIsForgotten) {
  Create(1, "a");
  Commit({StudyDeleted{kStudy, kStudy, TrialId(1)}});
  EXPECT_EQ(feed_.Find(kStudy, "a"), TrialId{});
  EXPECT_EQ(Now(), 0);
}

}  // namespace
}  // namespace espalier::nni
