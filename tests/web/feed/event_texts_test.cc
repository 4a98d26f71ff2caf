#include "tuner/web/feed/event_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace espalier {
namespace {

using testing::HasSubstr;

const FeedCursor kAt{"a1", 7};

TEST(FeedCursor, IsReadAsItIsWritten) {
  EXPECT_EQ(kAt.text(), "a1:7");
  const auto read = ParseFeedCursor("a1:7");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->incarnation, "a1");
  EXPECT_EQ(read->revision, 7);
  for (const char* text : {"", "7", ":7", "a1:", "a1:x", "a1:-1", "a1:7 ", "no\nhex:7", "g:1"}) {
    const auto refused = ParseFeedCursor(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("INCARNATION:REVISION"));
  }
}

TEST(EventTexts, HelloNamesTheCursor) {
  EXPECT_EQ(HelloEvent(kAt, TimeFromSeconds(12.5)),
            "retry: 2000\nevent: hello\nid: a1:7\ndata: {\"version\":1,\"incarnation\":\"a1\","
            "\"revision\":7,\"now\":12.500}\n\n");
}

TEST(EventTexts, NewsAreValuesAndThenWhatHasChanged) {
  RevisionLog::News news;
  news.revision = 7;
  news.studies = {StudyId(3)};
  news.trials = {{TrialId(5), StudyId(3), 1}};
  news.pool = true;
  RevisionLog::Values values;
  const RevisionLog::ChangedTrial trial{TrialId(5), StudyId(3), 1};
  values.values = {
      {.revision = 7,
       .trial = trial,
       .value =
           {.step = 2, .value = 0.1, .at = TimeFromSeconds(9), .batch_size = 64, .promise = 0.25F}},
      {.revision = 7,
       .trial = trial,
       .value = {.step = 3, .value = std::numeric_limits<double>::quiet_NaN(), .at = Time{}}}};
  EXPECT_EQ(NewsEvents(kAt, TimeFromSeconds(10), news, values),
            "event: values\n"
            "data: {\"now\":10.000,\"more\":false,\"trial_id\":[5,5],\"study_id\":[3,3],"
            "\"number\":[1,1],\"step\":[2,3],\"value\":[0.1,null],\"at\":[9.000,0.000],"
            "\"batch_size\":[64,null],\"promise\":[0.25,null],\"goodput\":[null,null]}\n\n"
            "event: changed\nid: a1:7\n"
            "data: {\"revision\":7,\"now\":10.000,\"studies\":[3],"
            "\"trials\":[{\"id\":5,\"study_id\":3,\"number\":1}],\"more\":false,\"pool\":true,"
            "\"decisions\":false}\n\n");
  EXPECT_EQ(NewsEvents(kAt, TimeFromSeconds(10), {}, {}), "");
}

TEST(EventTexts, LiveFiguresAreOfOneStudyOrAll) {
  const std::vector<LiveRow> trials = {{.trial = {TrialId(5), StudyId(3), 1},
                                        .slots = 2,
                                        .promise = 0.25,
                                        .figures = {1234.5678, 64, 0}},
                                       {.trial = {TrialId(6), StudyId(4), 0}, .slots = 1}};
  EXPECT_EQ(LiveEvent(TimeFromSeconds(1), trials, std::nullopt),
            "event: live\ndata: {\"now\":1.000,\"trial_id\":[5,6],\"slots\":[2,1],"
            "\"promise\":[0.25,null],\"goodput\":[1235,null],\"batch_size\":[64,null],"
            "\"throughput\":[null,null]}\n\n");
  EXPECT_THAT(LiveEvent(TimeFromSeconds(1), trials, StudyId(4)), HasSubstr("\"trial_id\":[6]"));
  EXPECT_EQ(LiveEvent(TimeFromSeconds(1), trials, StudyId(9)), "");
}

TEST(EventTexts, LiveFiguresAreInTheTable) {
  for (const std::string_view name : kLiveFigures) EXPECT_NE(FindFigure(name), nullptr) << name;
}

}  // namespace
}  // namespace espalier
