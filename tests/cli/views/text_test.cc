#include "tuner/cli/views/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/views/sample_study.h"
#include "tuner/cli/views/study_text.h"

namespace espalier {
namespace {

TEST(FormatValue, KeepsFourDigitsAndNamesWhatIsNoNumber) {
  EXPECT_EQ(FormatValue(0.912345), "0.9123");
  EXPECT_EQ(FormatValue(NAN), "nan");
  EXPECT_EQ(FormatValue(-INFINITY), "-inf");
}

TEST(FormatExactly, KeepsAllDigits) {
  EXPECT_EQ(FormatExactly(0.018319905063275035), "0.018319905063275035");
  EXPECT_EQ(FormatExactly(0.1), "0.1");
  EXPECT_EQ(FormatExactly(65536), "65536");
  EXPECT_EQ(FormatExactly(NAN), "nan");
  EXPECT_EQ(FormatExactly(-INFINITY), "-inf");
}

TEST(FormatDuration, PicksUnitsByLength) {
  EXPECT_EQ(FormatDuration(0.44), "0.4s");
  EXPECT_EQ(FormatDuration(59.4), "59s");
  EXPECT_EQ(FormatDuration(65), "1m05s");
  EXPECT_EQ(FormatDuration(3600 * 2 + 180), "2h03m");
  EXPECT_EQ(FormatDuration(86400 * 3 + 3600 * 4), "3d04h");
  EXPECT_EQ(FormatDuration(-1), "?");
}

TEST(Wrapped, BreaksBetweenWordsAndLeavesALongWordWhole) {
  EXPECT_EQ(Wrapped("", 5), std::vector<std::string>{});
  EXPECT_EQ(Wrapped("ab cd ef", 5), (std::vector<std::string>{"ab cd", "ef"}));
  EXPECT_EQ(Wrapped("a abcdefgh b", 5), (std::vector<std::string>{"a", "abcdefgh", "b"}));
}

TEST(Fit, CountsCodePointsAndCutsWithAnEllipsis) {
  EXPECT_EQ(FitLeft("1→2", 5), "1→2  ");
  EXPECT_EQ(FitRight("1→2", 5), "  1→2");
  EXPECT_EQ(FitLeft("abcdef", 4), "abc…");
  EXPECT_EQ(Cut("→→→", 2), "→…");
  EXPECT_EQ(Cut("abc", 0), "");
}

TEST(Fit, CountsTheColumnsOfWideCharactersAndOfMarks) {
  EXPECT_EQ(DisplayWidth("日本語"), 6U);
  EXPECT_EQ(DisplayWidth("한글 ok"), 7U);
  EXPECT_EQ(DisplayWidth("e\xCC\x81t\xC3\xA9"), 3U) << "e with a combining accent, t, é";
  EXPECT_EQ(DisplayWidth("🚀"), 2U);
  EXPECT_EQ(FitLeft("日本語", 8), "日本語  ");
  EXPECT_EQ(FitLeft("日本語の研究", 6), "日本… ") << "never half of one";
  EXPECT_EQ(FitRight("学習率", 4), " 学…");
}

TEST(Fit, TakesControlCharactersOut) { EXPECT_EQ(Cut("a\x1b[2Jb\n", 20), "a [2Jb "); }

TEST(BestFirst, PutsTheBestFirstAndTrialsWithoutValueLast) {
  const v1::StudyDetails details = SampleStudy();
  std::vector<std::int64_t> numbers;
  for (const v1::Trial* trial : BestFirst(details)) numbers.push_back(trial->number());
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 3, 1, 2, 4}));
}

TEST(BestFirst, RanksAsTheServiceDoes) {
  v1::StudyDetails details;
  details.mutable_study()->set_maximize(true);
  const auto add = [&](v1::TrialState state, double value) {
    v1::Trial* trial = details.add_trials();
    trial->set_number(details.trials_size() - 1);
    trial->set_state(state);
    trial->set_value(value);
  };
  add(v1::TRIAL_COMPLETE, 0.5);
  add(v1::TRIAL_PAUSED, 0.9);  // at its best
  add(v1::TRIAL_COMPLETE, INFINITY);
  add(v1::TRIAL_COMPLETE, 0.6);
  add(v1::TRIAL_PRUNED, 0.95);
  add(v1::TRIAL_COMPLETE, NAN);
  std::vector<std::int64_t> numbers;
  for (const v1::Trial* trial : BestFirst(details)) numbers.push_back(trial->number());
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{3, 0, 4, 1, 2, 5}));
}

TEST(BetterFor, TakesNaNAsTheWorst) {
  v1::Study study;
  EXPECT_TRUE(BetterFor(study, 1, NAN));
  EXPECT_FALSE(BetterFor(study, NAN, 1));
  EXPECT_TRUE(BetterFor(study, 1, 2));
}

TEST(DisplayParameters, ShowsStringsWithoutQuotes) {
  const v1::StudyDetails details = SampleStudy();
  EXPECT_EQ(DisplayParameters(details.trials(0)), "lr=0.01 batch_size=64 scaling_rule=adascale");
}

TEST(ExactParameter, KeepsAllDigitsAndShowsStringsWithoutQuotes) {
  v1::Parameter parameter;
  parameter.set_json("0.018319905063275035");
  EXPECT_EQ(DisplayParameter(parameter), "0.01832");
  EXPECT_EQ(ExactParameter(parameter), "0.018319905063275035");
  parameter.set_json("\"sgd\"");
  EXPECT_EQ(ExactParameter(parameter), "sgd");
}

}  // namespace
}  // namespace espalier
