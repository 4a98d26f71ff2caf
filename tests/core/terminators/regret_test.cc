#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <stop_token>
#include <string>

#include "base/random.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Trials of a bowl, the smaller x the better, that end one after another.
class BowlStudy {
 public:
  explicit BowlStudy(std::int64_t count, double scale = 1) {
    Random random(5);
    for (std::int64_t n = 0; n < count; ++n) {
      const Parameters& drawn = parameters_.emplace_back(space.Sample(random));
      double value = 0;
      for (const Parameter& parameter : drawn) {
        const double x = NumberOf(parameter.value).value_or(0);
        value += x * x;
      }
      trials.push_back({.trial_number = n,
                        .parameters = &drawn,
                        .value = scale * value,
                        .at = Time{n},
                        .standard_error = scale * 0.5});
    }
  }

  TerminatorVerdict Judge(const std::string& name, const Options& options,
                          std::stop_token stop = {}) const {
    const auto terminator = MakeTerminator(name, options);
    EXPECT_TRUE(terminator.ok()) << terminator.status();
    return (*terminator)
        ->Judge({.space = space,
                 .direction = direction,
                 .ended = trials,
                 .seed = 1,
                 .stop = std::move(stop)});
  }

  SearchSpace space = *SearchSpace::FromJson(R"({
    "x": {"_type": "uniform", "_value": [0, 1]},
    "kind": {"_type": "choice", "_value": [
      {"_name": "A"}, {"_name": "B", "y": {"_type": "uniform", "_value": [0, 1]}}]}})");
  Direction direction = Direction::kMinimize;
  std::vector<Observation> trials;

 private:
  std::deque<Parameters> parameters_;
};

TEST(Regret, EndsWithFiguresOnceTheBoundIsBelowTheError) {
  const BowlStudy study(30);
  const TerminatorVerdict verdict = study.Judge("regret", {});
  EXPECT_TRUE(verdict.ends);
  EXPECT_THAT(verdict.reason, StartsWith("after 30 complete trials "));
  EXPECT_THAT(verdict.reason, HasSubstr("less than its standard error of 0.5"));
  EXPECT_THAT(study.Judge("regret", {{"error", 0.6}}).reason, HasSubstr("the error of 0.6"));
  EXPECT_FALSE(study.Judge("regret", {{"error", 1e-6}}).ends);
  EXPECT_THAT(study.Judge("regret", {{"error", 1e-6}}).reason, IsEmpty());
}

TEST(Regret, IsInUnitsOfTheValuesAndOfEitherDirection) {
  const double error = 0.2;
  const bool ends = BowlStudy(30).Judge("regret", {{"error", error}}).ends;
  EXPECT_EQ(BowlStudy(30, 1e6).Judge("regret", {{"error", 1e6 * error}}).ends, ends);
  EXPECT_FALSE(BowlStudy(30, 1e6).Judge("regret", {{"error", error}}).ends);
  BowlStudy turned(30, -1);
  turned.direction = Direction::kMaximize;
  EXPECT_EQ(turned.Judge("regret", {{"error", error}}).ends, ends);
}

TEST(Regret, SaysThatTheBestTrialHasToldNoError) {
  BowlStudy study(30);
  for (Observation& trial : study.trials) trial.standard_error = NAN;
  const TerminatorVerdict verdict = study.Judge("regret", {});
  EXPECT_FALSE(verdict.ends);
  EXPECT_THAT(verdict.reason, HasSubstr("has told no standard error"));
  study.trials.resize(19);
  EXPECT_THAT(study.Judge("regret", {}).reason, IsEmpty()) << "too few to judge";
}

TEST(Regret, LooksAtTheBestPartOfTheTrials) {
  BowlStudy study(40);
  // Those that are far worse make the values' scale, where all of them are in the model.
  for (Observation& trial : study.trials) {
    if (trial.value > 0.5) trial.value = 1e4;
  }
  const Options best = {{"error", 0.6}, {"top_trials_ratio", 0.1}, {"min_trials", 5}};
  EXPECT_TRUE(study.Judge("regret", best).ends);
  Options all = best;
  all["top_trials_ratio"] = 1.0;
  EXPECT_FALSE(study.Judge("regret", all).ends);
}

TEST(Regret, CountsNeitherPrunedNorFailedTrials) {
  BowlStudy study(21);
  EXPECT_TRUE(study.Judge("regret", {{"error", 10}}).ends);
  study.trials[3].pruned = true;
  EXPECT_TRUE(study.Judge("regret", {{"error", 10}}).ends);
  study.trials[4].value = NAN;
  EXPECT_FALSE(study.Judge("regret", {{"error", 10}}).ends);
}

TEST(Emmr, EndsWithFiguresOnceTheBoundIsBelowTheThreshold) {
  const BowlStudy study(32);
  const TerminatorVerdict verdict = study.Judge("emmr", {{"threshold_ratio", 10}});
  EXPECT_TRUE(verdict.ends);
  EXPECT_THAT(verdict.reason, StartsWith("after 32 complete trials the newest, 31, can have"));
  EXPECT_THAT(verdict.reason, HasSubstr("10 of the median at the 20 trials after the first 10"));
  EXPECT_FALSE(study.Judge("emmr", {{"threshold_ratio", 1e-6}}).ends);
  EXPECT_THAT(study.Judge("emmr", {{"error", 1e6}}).reason, HasSubstr("the error of 1e+06"));
  EXPECT_FALSE(study.Judge("emmr", {{"error", 1e-6}}).ends);
}

TEST(Emmr, KnowsNoUnits) {
  const auto ends = [](double scale, double error) {
    return BowlStudy(25, scale).Judge("emmr", {{"error", error}}).ends;
  };
  for (const double error : {0.01, 1.0, 100.0}) EXPECT_EQ(ends(1, error), ends(1e6, error));
}

TEST(Emmr, WaitsForTheTrialsOfItsThreshold) {
  EXPECT_FALSE(BowlStudy(29).Judge("emmr", {{"threshold_ratio", 1e9}}).ends);
  EXPECT_TRUE(BowlStudy(30).Judge("emmr", {{"threshold_ratio", 1e9}}).ends);
  const Options few = {{"threshold_ratio", 1e9}, {"warm_up_trials", 1}, {"initial_trials", 4}};
  EXPECT_FALSE(BowlStudy(19).Judge("emmr", few).ends);
  EXPECT_TRUE(BowlStudy(20).Judge("emmr", few).ends);
}

// Of those there are no bounds that a threshold could be made of.
TEST(Emmr, EndsNothingWhereItsFirstTrialsAreOfAnotherSpace) {
  BowlStudy study(35);
  EXPECT_TRUE(study.Judge("emmr", {{"threshold_ratio", 1e9}}).ends);
  const Parameters elsewhere = {{"x", 7.0}, {"kind", std::string("A")}};
  for (std::size_t n = 0; n < 30; ++n) study.trials[n].parameters = &elsewhere;
  EXPECT_FALSE(study.Judge("emmr", {{"threshold_ratio", 1e9}}).ends);
  EXPECT_TRUE(study.Judge("emmr", {{"error", 1e9}}).ends);
}

TEST(Emmr, TakesTheObjectiveForDeterministicWhereAsked) {
  BowlStudy study(25);
  Random random(9);
  for (Observation& trial : study.trials) trial.value += 0.3 * random.Normal();
  const auto told = [&study](double deterministic) {
    return study.Judge("emmr", {{"error", 1e6}, {"deterministic_objective", deterministic}}).reason;
  };
  EXPECT_NE(told(0), told(1));
}

TEST(ModelTerminators, NeedNoLongerWhereTrialsAreVeryMany) {
  const BowlStudy study(0);
  const std::vector<Observation> many(400);
  const std::vector<Observation> more(10000);
  for (const char* name : {"regret", "emmr"}) {
    const auto terminator = *MakeTerminator(name, {});
    const double work = terminator->Work({.space = study.space, .ended = many});
    EXPECT_GT(work, 20000) << name;
    EXPECT_EQ(work, terminator->Work({.space = study.space, .ended = more})) << name;
  }
}

TEST(ModelTerminators, AreOfTheBestOfMoreTrialsThanAModelTakes) {
  const BowlStudy study(400);
  EXPECT_TRUE(study.Judge("regret", {{"error", 0.3}}).ends);
  EXPECT_FALSE(study.Judge("regret", {{"error", 1e-9}}).ends);
}

TEST(ModelTerminators, EndNothingOnceNobodyWantsToKnow) {
  const BowlStudy study(30);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(study.Judge("regret", {{"error", 1e9}}, stop.get_token()).ends);
  EXPECT_FALSE(study.Judge("emmr", {{"error", 1e9}}, stop.get_token()).ends);
}

TEST(ModelTerminators, SayWhatTheyTake) {
  const SearchSpace one = *SearchSpace::FromJson(R"({"x": {"_type": "choice", "_value": [1]}})");
  for (const char* name : {"regret", "emmr"}) {
    EXPECT_THAT(std::string((*MakeTerminator(name, {}))->Fits(one).message()),
                HasSubstr("needs a parameter with more than one value"));
    EXPECT_THAT(std::string(MakeTerminator(name, {{"error", 0}}).status().message()),
                HasSubstr("option \"error\" needs a number > 0, got 0"));
  }
  EXPECT_EQ(std::string(MakeTerminator("regret", {{"top_trials_ratio", 2}}).status().message()),
            "terminator \"regret\": option \"top_trials_ratio\" needs a number from 0 to 1, got 2");
  EXPECT_EQ(std::string(MakeTerminator("emmr", {{"min_trials", 1}}).status().message()),
            "terminator \"emmr\": option \"min_trials\" needs a whole number >= 2, got 1");
  EXPECT_EQ(std::string(MakeTerminator("emmr", {{"delta", 0}}).status().message()),
            "terminator \"emmr\": option \"delta\" needs a number > 0 and < 1, got 0");
  EXPECT_EQ(std::string(MakeTerminator("emmr", {{"initial_trials", 2}}).status().message()),
            "terminator \"emmr\": option \"initial_trials\" needs a whole number from 3 to 100, "
            "got 2");
}

}  // namespace
}  // namespace espalier
