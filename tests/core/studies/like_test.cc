#include "tuner/core/studies/like.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/core/core_fixture.h"
#include "tuner/core/studies/validate.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

StudySpec SpecOf(const std::string& name, const std::string& space) {
  StudySpec spec;
  spec.name = name;
  spec.command = {"train"};
  spec.space = *SearchSpace::FromJson(space);
  return spec;
}

constexpr char kOther[] = R"({"lr": {"_type": "loguniform", "_value": [0.0001, 1]},
    "layers": {"_type": "randint", "_value": [1, 9]},
    "optimizer": {"_type": "choice", "_value": ["sgd", "adam"]},
    "wd": {"_type": "uniform", "_value": [0, 1]}})";
constexpr char kNew[] = R"({"lr": {"_type": "uniform", "_value": [0.001, 1]},
    "layers": {"_type": "uniform", "_value": [1, 9]},
    "optimizer": {"_type": "choice", "_value": ["adam", "lion"]},
    "dropout": {"_type": "uniform", "_value": [0, 1]}})";

// A state in which study "other" has trials, and a study that is to be like it.
class Like : public ::testing::Test {
 protected:
  explicit Like(const StudySpec& other = SpecOf("other", kOther)) {
    state_.Apply(StudyCreated{StudyId(1), other, {}});
    spec_.like.study = "other";
  }

  void Add(Parameters parameters, TrialState end, std::optional<double> value,
           std::int64_t step = 0) {
    const TrialId id(++trials_);
    state_.Apply(TrialCreated{id, StudyId(1), trials_ - 1, std::move(parameters), {}});
    state_.Apply(TrialStateChanged{id, TrialState::kRunning, {}});
    Trial& trial = state_.trials.at(id);
    if (step > 0) trial.values.push_back({.step = step, .value = value.value_or(0), .at = {}});
    if (end != TrialState::kRunning) state_.Apply(TrialStateChanged{id, end, {}, "", value});
  }
  static Parameters At(double lr) {
    return {
        {"lr", lr}, {"layers", std::int64_t{2}}, {"optimizer", std::string("adam")}, {"wd", 0.5}};
  }
  std::string WhyNot() { return std::string(TrialsLike(state_, spec_).status().message()); }

  TunerState state_;
  StudySpec spec_ = SpecOf("new", kNew);
  std::int64_t trials_ = 0;
};

TEST_F(Like, TakesWhatBothSpacesHaveTheBestFirst) {
  Add(At(0.3), TrialState::kFail, std::nullopt);
  Add(At(0.1), TrialState::kComplete, 5);
  Add(At(0.2), TrialState::kComplete, -7);
  Add(At(0.4), TrialState::kPruned, -90, 3);
  Add(At(0.5), TrialState::kPruned, 80, 6);
  Add(At(0.6), TrialState::kComplete, std::nan(""));
  Add(At(0.7), TrialState::kRunning, std::nullopt);
  Add(At(0.0005), TrialState::kComplete, -100);  // outside
  const auto like = TrialsLike(state_, spec_);
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_EQ(like->ended, 7);
  EXPECT_EQ(like->within, 6);
  const auto at = [](double lr) {
    return Parameters{{"lr", lr}, {"optimizer", std::string("adam")}};
  };
  // The best, the median, pruned ones with the worse value below the median, and those without one.
  const std::vector<ScoredTrial> expected = {{at(0.2), 1}, {at(0.1), 0},  {at(0.5), -1.8},
                                             {at(0.4), 0}, {at(0.3), -1}, {at(0.6), -1}};
  ASSERT_EQ(like->trials.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(like->trials[i].parameters, expected[i].parameters) << i;
    EXPECT_NEAR(like->trials[i].score, expected[i].score, 0.1) << i;
  }
  spec_.like = *like;
  EXPECT_TRUE(Validate(spec_).ok()) << Validate(spec_);
  EXPECT_EQ(LikeText(spec_),
            "learns from 6 of the 7 ended trials of study \"other\"; 1 lie outside the search "
            "space; they tell nothing of layers, dropout");
}

TEST_F(Like, GoesByDirectionAndByWhatIsHeld) {
  Add(At(0.1), TrialState::kComplete, 5);
  Parameters sgd = At(0.2);
  sgd[2].value = std::string("sgd");
  Add(sgd, TrialState::kComplete, 7);
  state_.studies.at(StudyId(1)).spec.directions = {Direction::kMaximize};
  EXPECT_EQ(WhyNot(), "\"like\": study \"other\" is to maximize, and this one to minimize");
  spec_.directions = {Direction::kMaximize};
  EXPECT_EQ(TrialsLike(state_, spec_)->trials.size(), 1U) << "sgd is no option";
  spec_.space = state_.studies.at(StudyId(1)).spec.space;
  EXPECT_EQ(TrialsLike(state_, spec_)->trials.front().parameters, sgd);
  spec_.fixed = {{"optimizer", std::string("adam")}};
  EXPECT_EQ(TrialsLike(state_, spec_)->trials.front().parameters, At(0.1));
}

TEST_F(Like, KeepsTheBestAndSomeOfAllRanksOfMany) {
  for (int i = 0; i < 1000; ++i) {
    Add(At(0.001 + 0.0009 * i), TrialState::kComplete, (i * 37) % 1000);
  }
  const LikeStudy like = *TrialsLike(state_, spec_);
  ASSERT_EQ(like.trials.size(), kMaxTrialsTaken);
  EXPECT_EQ(like.within, 1000);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(like.trials[i].score, 1 - static_cast<double>(i) / 500, 1e-12);
  }
  EXPECT_NEAR(like.trials[75].score, -std::log1p(0.05), 0.03);
  EXPECT_LT(like.trials[99].score, -0.6);
}

TEST_F(Like, PassesOverClones) {
  Add(At(0.1), TrialState::kComplete, 5);
  Add(At(0.2), TrialState::kComplete, -7);
  state_.Apply(TrialCloned{TrialId(trials_), {.parent = 0, .founder = 0, .step = 10}});
  const auto like = TrialsLike(state_, spec_);
  ASSERT_TRUE(like.ok()) << like.status();
  EXPECT_EQ(like->ended, 1);
  ASSERT_EQ(like->trials.size(), 1U);
  EXPECT_EQ(*Find(like->trials.front().parameters, "lr"), ParameterValue(0.1));
}

TEST_F(Like, ScoresWhateverTheValues) {
  for (const double value : {3.0, 3.0, 3.0, 1e308, -1e308})
    Add(At(0.1), TrialState::kComplete, value);
  std::vector<double> scores;
  const auto like = TrialsLike(state_, spec_);
  for (const ScoredTrial& trial : like->trials) scores.push_back(trial.score);
  EXPECT_THAT(scores,
              ::testing::ElementsAre(1, 0, 0, 0, ::testing::DoubleNear(-std::log1p(1), 0.05)));
  Add(At(0.2), TrialState::kComplete, -1e308);
  for (int i = 0; i < 9; ++i) Add(At(0.3), TrialState::kComplete, -1e308);
  EXPECT_EQ(TrialsLike(state_, spec_)->trials[9].score, 1);
  EXPECT_EQ(TrialsLike(state_, spec_)->trials[11].score, 0) << "the next worse one";
}

TEST_F(Like, ScoresEqualsAlike) {
  for (int i = 0; i < 3; ++i) Add(At(0.1), TrialState::kComplete, 0);
  const auto like = TrialsLike(state_, spec_);
  for (const ScoredTrial& trial : like->trials) EXPECT_EQ(trial.score, 1);
}

TEST_F(Like, TakesNoMoreThanAStudysTextBears) {
  const std::string name(120, 'n');
  std::string space;
  for (int i = 0; i < 200; ++i) {
    space += (i > 0 ? ", \"" : "{\"") + std::to_string(i) + name +
             R"(": {"_type": "uniform", "_value": [0, 1]})";
  }
  spec_.space = *SearchSpace::FromJson(space + "}");
  state_.studies.at(StudyId(1)).spec.space = spec_.space;
  Random random(1);
  for (int i = 0; i < 10; ++i) Add(spec_.space.Sample(random), TrialState::kComplete, i);
  EXPECT_EQ(TrialsLike(state_, spec_)->trials.size(), 2U);
}

TEST_F(Like, RefusesWhatTellsNothing) {
  EXPECT_EQ(WhyNot(), "\"like\": study \"other\" has no complete trial with a value to learn from");
  Add(At(0.1), TrialState::kFail, std::nullopt);
  Add(At(0.0002), TrialState::kComplete, 2);
  EXPECT_EQ(WhyNot(),
            "\"like\": no complete trial of study \"other\" lies in this study's search space");
  spec_.like.study = "othr";
  EXPECT_EQ(WhyNot(), "\"like\": there is no study \"othr\"");
  spec_.like.study = "other";
  state_.studies.at(StudyId(1)).spec.directions = {Direction::kMinimize, Direction::kMinimize};
  EXPECT_EQ(WhyNot(), "\"like\": study \"other\" has 2 directions, and this one 1 direction");
  state_.studies.at(StudyId(1)).spec.has_metric = false;
  EXPECT_EQ(WhyNot(), "\"like\": study \"other\" has no metric");
}

// Both have two objectives: the first is minimized, the second maximized.
class LikeOfTwo : public Like {
 protected:
  LikeOfTwo() : Like(OfTwo("other", kOther)) {
    spec_ = OfTwo("new", kNew);
    spec_.like.study = "other";
  }
  static StudySpec OfTwo(const std::string& name, const std::string& space) {
    StudySpec spec = SpecOf(name, space);
    spec.directions = {Direction::kMinimize, Direction::kMaximize};
    spec.metric = "loss";
    spec.other_metrics = {"speed"};
    return spec;
  }
  void Add(double lr, TrialState end, std::optional<double> value, std::vector<double> others,
           std::int64_t step = 0) {
    Like::Add(At(lr), TrialState::kRunning, value, step);
    state_.trials.at(TrialId(trials_)).other_values = std::move(others);
    state_.Apply(TrialStateChanged{TrialId(trials_), end, {}, "", value});
  }
};

TEST_F(LikeOfTwo, RanksTrialsByTheirFrontsAndScoresEachObjective) {
  Add(0.1, TrialState::kComplete, 3, {3});   // dominated by the next
  Add(0.2, TrialState::kComplete, 2, {4});   // between the ends of the front
  Add(0.3, TrialState::kComplete, 1, {1});   // an end
  Add(0.4, TrialState::kComplete, 4, {5});   // the other end
  Add(0.5, TrialState::kComplete, 9, {0});   // dominated by all
  Add(0.6, TrialState::kPruned, 0, {9}, 4);  // dominates all
  Add(0.7, TrialState::kPruned, 8, {0}, 6);
  Add(0.8, TrialState::kPruned, 7, {1}, 6);  // dominates the one before
  Add(0.9, TrialState::kComplete, 0, {});    // has not told all
  Add(1.0, TrialState::kFail, std::nullopt, {});
  const auto like = TrialsLike(state_, spec_);
  ASSERT_TRUE(like.ok()) << like.status();
  std::vector<double> order;
  for (const ScoredTrial& trial : like->trials) {
    order.push_back(std::get<double>(*Find(trial.parameters, "lr")));
    ASSERT_EQ(trial.other_scores.size(), 1U);
  }
  EXPECT_THAT(std::vector(order.begin(), order.begin() + 2),
              ::testing::UnorderedElementsAre(0.3, 0.4));
  EXPECT_THAT(std::vector(order.begin() + 2, order.end()),
              ::testing::ElementsAre(0.2, 0.1, 0.5, 0.8, 0.7, 0.6, 0.9, 1.0));
  const ScoredTrial& middle = like->trials[2];
  EXPECT_DOUBLE_EQ(middle.score, 0.5) << "of 1, the best, and 3, the median";
  EXPECT_DOUBLE_EQ(middle.other_scores[0], 0.5) << "of 5 and 3";
  const ScoredTrial& pruned = like->trials[7];
  EXPECT_EQ(pruned.score, 0) << "no better than the median";
  EXPECT_EQ(pruned.other_scores[0], 0);
  EXPECT_LE(like->trials[8].score, -1);
  EXPECT_LE(like->trials[8].other_scores[0], -1);
  for (const char* sampler : {"tpe", "gp", "nsga2", "nsga3", "auto"}) {
    spec_.like = *like;
    spec_.sampler = {sampler, {}};
    spec_.pruner = {"none", {}};
    EXPECT_TRUE(Validate(spec_).ok()) << sampler << ": " << Validate(spec_);
  }
}

TEST_F(LikeOfTwo, RefusesWhatTellsOfOtherObjectives) {
  Add(0.1, TrialState::kComplete, 3, {3});
  StudySpec& other = state_.studies.at(StudyId(1)).spec;
  other.directions[1] = Direction::kMinimize;
  EXPECT_EQ(WhyNot(),
            "\"like\": study \"other\" is to minimize, and this one to maximize of objective 2");
  other.directions[1] = Direction::kMaximize;
  other.metric = "speed";
  other.other_metrics = {"loss"};
  EXPECT_EQ(
      WhyNot(),
      "\"like\": metric \"loss\" is not objective 1 of study \"other\", where they are speed, "
      "loss: give metrics in the same order");
  other.metric = "cost";
  other.other_metrics = {"throughput"};
  EXPECT_EQ(WhyNot(), "") << "others may be called otherwise";
  spec_.like = *TrialsLike(state_, spec_);
  spec_.like.trials[0].other_scores = {};
  EXPECT_EQ(Validate(spec_).message(),
            "\"like\": trials[0]: needs a score for each of 2 directions, got 1");
  spec_.like.trials[0].other_scores = {1.5};
  EXPECT_EQ(Validate(spec_).message(), "\"like\": trials[0]: needs a score from -5 to 1, got 1.5");
}

std::string WhyNotLike(std::vector<ScoredTrial> trials, const std::string& sampler = "tpe") {
  StudySpec spec = SpecOf("new", kNew);
  spec.sampler = {sampler, {}};
  spec.like = {.study = "other", .ended = 1, .within = 1, .trials = std::move(trials)};
  return std::string(Validate(spec).message());
}

TEST(ValidateLike, HoldsTrialsToTheSearchSpace) {
  EXPECT_EQ(WhyNotLike({{{{"lr", 0.5}}, 0.25}, {{}, 0.75}}), "");
  EXPECT_EQ(WhyNotLike({}), "") << "they are looked up where it is created";
  EXPECT_THAT(WhyNotLike({{{{"lr", 5.0}}, 0.25}}),
              StartsWith("\"like\": trials[0]: parameter \"lr\" is 5, outside"));
  EXPECT_EQ(WhyNotLike({{{{"lr", 0.5}}, 1.5}}),
            "\"like\": trials[0]: needs a score from -5 to 1, got 1.5");
  EXPECT_THAT(WhyNotLike({{{{"lr", 0.5}}, std::nan("")}}), HasSubstr("got nan"));
  EXPECT_EQ(WhyNotLike({{{}, 0.5}}),
            "\"like\": study \"other\" has no parameter that this study searches");
  EXPECT_EQ(WhyNotLike(std::vector<ScoredTrial>(101, {{{"lr", 0.5}}, 0.5})),
            "\"like\": at most 100 trials, got 101");
}

TEST(ValidateLike, NamesTheSamplersThatCanLearnFromIt) {
  for (const char* takes : {"tpe", "gp", "cmaes", "nsga2"}) {
    EXPECT_EQ(WhyNotLike({{{{"lr", 0.5}}, 0.5}}, takes), "") << takes;
  }
  EXPECT_EQ(WhyNotLike({}, "random")
                .find("\"like\": the sampler \"random\" cannot learn from "
                      "another study: give \"tpe\""),
            0U);
  EXPECT_THAT(
      WhyNotLike({{{{"optimizer", std::string("adam")}}, 0.5}}, "cmaes"),
      StartsWith("\"like\": of what study \"other\" has in common with this one (optimizer) "
                 "the sampler \"cmaes\" can learn nothing: give "));
}

TEST(ValidateLike, RefusesStudiesWithoutAMetric) {
  StudySpec spec = SpecOf("new", kNew);
  spec.like.study = "other";
  spec.has_metric = false;
  EXPECT_EQ(Validate(spec).message(), "\"like\": goes by a metric, and the study has none");
}

using StudiesLikeOthers = CoreTest;

TEST_F(StudiesLikeOthers, SayInTheirRecordWhatTheyLearnFrom) {
  StudySpec spec = Spec(3);
  spec.sampler = {"tpe", {}};
  spec.like = {.study = "gone", .ended = 40, .within = 2};
  EXPECT_EQ(Step(CreateStudy{spec, false}).status.message(),
            "\"like\": the trials of study \"gone\" are to be given with it");
  spec.like.trials = {{{{"x", 0.5}}, 0.25}, {{{"x", 0.25}}, 0.75}};
  ASSERT_TRUE(Step(CreateStudy{spec, false}).status.ok());
  EXPECT_EQ(study().decisions.front().reason,
            "learns from 2 of the 40 ended trials of study \"gone\"; 38 lie outside the search "
            "space");
}

}  // namespace
}  // namespace espalier
