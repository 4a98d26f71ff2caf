#include "tuner/core/samplers/prior.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "tests/core/samplers/functions.h"
#include "tests/core/samplers/trials_in_turn.h"

namespace espalier::samplers {
namespace {

using testing::TrialsInTurn;

std::shared_ptr<const Sampler> SamplerOf(const std::string& name) {
  Options options;
  if (name == "gp") options = {{"local_searches", 4}, {"preliminary_samples", 64}};
  return *MakeSampler(name, options);
}

const char* const kSquare = R"({"x": {"_type": "uniform", "_value": [0, 1]},
                             "y": {"_type": "uniform", "_value": [0, 1]}})";
const char* const kWithOptions = R"({"n": {"_type": "choice", "_value": [
      {"_name": "a", "p": {"_type": "uniform", "_value": [0, 1]}},
      {"_name": "b", "q": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "c"}]},
    "r": {"_type": "randint", "_value": [0, 100]}})";

TrialsInTurn StudyOn(const char* space) { return {.space = *SearchSpace::FromJson(space)}; }

TEST(WithPrior, IsTheSamplerItselfWithoutBeliefs) {
  const auto sampler = SamplerOf("tpe");
  EXPECT_EQ(WithPrior(sampler, {}), sampler);
}

TEST(WithPrior, TriesWhatIsExpectedFirst) {
  for (const char* name : {"tpe", "gp", "cmaes"}) {
    TrialsInTurn study = StudyOn(kWithOptions);
    const auto sampler = WithPrior(
        SamplerOf(name), {{"n", std::string("b")}, {"n/b/q", 0.25}, {"r", std::int64_t{31}}});
    EXPECT_EQ(*study.Ask(*sampler),
              (Parameters{{"n", std::string("b")}, {"n/b/q", 0.25}, {"r", std::int64_t{31}}}));
  }
}

TEST(WithPrior, LeavesOtherParametersAndLaterTrialsToTheSampler) {
  for (const std::string name : {"tpe", "gp", "cmaes"}) {
    TrialsInTurn study = StudyOn(kSquare);
    const auto sampler = SamplerOf(name);
    const auto with = WithPrior(sampler, {{"x", 0.5}});
    int same = 0;
    for (int i = 0; i < 40; ++i) {
      const Parameters plain = *study.Ask(*sampler);
      const Parameters drawn = *study.Ask(*with);
      ASSERT_TRUE(study.space.Validate(drawn).ok());
      EXPECT_EQ(*Find(drawn, "y"), *Find(plain, "y")) << name << " " << i;
      if (drawn == plain) ++same;
      study.End(drawn, std::get<double>(*Find(drawn, "x")));
    }
    // Of 40 trials 8.5 are expected to be from the prior: the sum of ChanceOfPrior.
    EXPECT_GE(same, 24) << name;
    EXPECT_LE(same, 38) << name;
  }
}

TEST(WithPrior, FadesByTrialsOfAnyKind) {
  EXPECT_EQ(ChanceOfPrior(0.5, 0), 1);
  EXPECT_EQ(ChanceOfPrior(0.5, 10), 0.25);
  EXPECT_GT(ChanceOfPrior(0.9, 10), ChanceOfPrior(0.5, 10));
  double all = 0;
  for (std::size_t n = 0; n < 100'000; ++n) all += ChanceOfPrior(0.5, n);
  EXPECT_LT(all, 11);
  // Trials that fail where they are expected to be good do not hold it there.
  TrialsInTurn study = StudyOn(kSquare);
  const auto sampler = SamplerOf("tpe");
  const auto with = WithPrior(sampler, {{"x", 0.5, 0.9}});
  for (int i = 0; i < 400; ++i) study.End(*study.Ask(*with), std::nan(""));
  int drawn = 0;
  for (int i = 0; i < 50; ++i) {
    if (*study.Ask(*with) != *study.Ask(*sampler)) ++drawn;
    study.End(*study.Ask(*with), std::nan(""));
  }
  EXPECT_LE(drawn, 3);
}

TEST(WithPrior, DrawsCloserWithMoreConfidence) {
  const auto spread = [](double confidence) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      TrialsInTurn study = StudyOn(kSquare);
      study.seed = seed;
      study.End({{"x", 0.1}, {"y", 0.1}}, 1);  // the next one is from the prior by 0.8 or more
      const Parameters drawn = *study.Ask(*WithPrior(SamplerOf("tpe"), {{"x", 0.5, confidence}}));
      sum += std::abs(std::get<double>(*Find(drawn, "x")) - 0.5);
    }
    return sum / 200;
  };
  EXPECT_LT(spread(0.9), 0.08);
  EXPECT_GT(spread(0.5), 0.12);
}

TEST(WithPrior, TakesEveryKindOfParameter) {
  TrialsInTurn study = StudyOn(R"({"c": {"_type": "choice", "_value": ["p", "q", "r"]},
      "b": {"_type": "choice", "_value": [32, 64, 128]},
      "qu": {"_type": "quniform", "_value": [0, 1, 0.25]},
      "lu": {"_type": "loguniform", "_value": [1e-6, 1]},
      "qlu": {"_type": "qloguniform", "_value": [1, 5000, 2]},
      "n": {"_type": "normal", "_value": [1, 2]}, "ln": {"_type": "lognormal", "_value": [0, 3]}})");
  const auto sampler = WithPrior(SamplerOf("tpe"), {{"c", std::string("q"), 0.99},
                                                    {"b", std::int64_t{64}, 0.99},
                                                    {"qu", 0.5, 0.99},
                                                    {"lu", 1e-6, 0.99},
                                                    {"qlu", 4.0, 0.01},
                                                    {"n", 40.0, 0.99},
                                                    {"ln", 1.0, 0.5}});
  for (int i = 0; i < 60; ++i) {
    const Parameters drawn = *study.Ask(*sampler);
    ASSERT_TRUE(study.space.Validate(drawn).ok()) << ToJson(drawn);
    study.End(drawn, i);
  }
}

TEST(WithPrior, DoesNotTryAConfigurationTwice) {
  TrialsInTurn study = StudyOn(R"({"c": {"_type": "choice", "_value": ["p", "q", "r"]},
                          "r": {"_type": "randint", "_value": [0, 4]}})");
  const auto sampler = WithPrior(SamplerOf("tpe"), {{"c", std::string("q"), 0.99}});
  for (int i = 0; i < 12; ++i) {
    const Parameters drawn = *study.Ask(*sampler);
    for (const Parameters& before : study.tried) EXPECT_NE(drawn, before);
    study.End(drawn, i);
  }
  EXPECT_EQ(study.Ask(*sampler), std::nullopt);
}

// The mean over seeds of how far the best of so many trials is from the optimum, at x = y = 0.3.
double MeanRegret(const std::string& name, const std::vector<Belief>& prior, int trials) {
  double sum = 0;
  constexpr int kSeeds = 20;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto sampler = WithPrior(SamplerOf(name), prior);
    sum += espalier::testing::BestByTrial(*sampler, espalier::testing::Bowl(), trials, seed).back();
  }
  return sum / kSeeds;
}

TEST(WithPrior, HelpsWhereItIsRightAndIsForgivenWhereItIsWrong) {
  const std::vector<Belief> right = {{"x", 0.33, 0.9}, {"y", 0.27, 0.9}};
  const std::vector<Belief> wrong = {{"x", 0.95, 0.9}, {"y", 0.95, 0.9}};
  for (const std::string name : {"tpe", "cmaes"}) {
    const double early = MeanRegret(name, {}, 10);
    EXPECT_LT(MeanRegret(name, right, 10), 0.5 * early) << name;
    EXPECT_LT(MeanRegret(name, wrong, 100), 0.5 * early) << name;
  }
}

}  // namespace
}  // namespace espalier::samplers
