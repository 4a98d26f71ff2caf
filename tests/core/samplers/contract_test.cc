// What every sampler of the table keeps to.

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "tests/base/plugin_rows.h"
#include "tests/core/samplers/functions.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const char* const kSpaces[] = {
    R"({"x": {"_type": "uniform", "_value": [-2, 3]}})",
    R"({"x": {"_type": "choice", "_value": ["only"]}, "y": {"_type": "normal", "_value": [0, 1]}})",
    R"({"a": {"_type": "choice", "_value": ["p", "q", "r"]},
        "b": {"_type": "choice", "_value": [32, 64, 128]},
        "c": {"_type": "quniform", "_value": [2, 10, 5]}})",
    R"({"rule": {"_type": "choice", "_value": [
          {"_name": "none"},
          {"_name": "adascale", "ema": {"_type": "uniform", "_value": [0.5, 1]},
           "start": {"_type": "choice", "_value": [
             {"_name": "cold"}, {"_name": "warm", "steps": {"_type": "randint", "_value": [1, 9]}}]}}]},
        "lr": {"_type": "loguniform", "_value": [1e-4, 1]}})",
    R"({"n": {"_type": "choice", "_value": [
          {"_name": "A", "p": {"_type": "randint", "_value": [0, 3]},
           "m": {"_type": "choice", "_value": [
             {"_name": "X", "z": {"_type": "choice", "_value": [true, false]}}, {"_name": "Y"}]}},
          {"_name": "B"}]},
        "c": {"_type": "choice", "_value": [32, 64]}})",
    R"({"c": {"_type": "choice", "_value": [1, "a", true, 0.5]},
        "r": {"_type": "randint", "_value": [-5, 6]}, "u": {"_type": "uniform", "_value": [0, 1]},
        "qu": {"_type": "quniform", "_value": [0, 1, 0.3]},
        "lu": {"_type": "loguniform", "_value": [1e-6, 1]},
        "qlu": {"_type": "qloguniform", "_value": [1, 5000, 2]},
        "n": {"_type": "normal", "_value": [1, 2]}, "qn": {"_type": "qnormal", "_value": [0, 9, 2]},
        "ln": {"_type": "lognormal", "_value": [0, 3]},
        "qln": {"_type": "qlognormal", "_value": [1, 1, 0.5]}})",
};

struct Case {
  std::string name;  // of the case
  std::string sampler;
  Options options;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string& name : Samplers().Names()) {
    const auto sampler = *MakeSampler(name, {});
    if (!sampler->draws() || sampler->outside() != nullptr) continue;
    Options options;
    if (name == "gp") {  // in less time
      options = {{"local_searches", 4}, {"preliminary_samples", 64}};
    }
    cases.push_back({name, name, options});
  }
  cases.push_back({"tpe_one_at_a_time", "tpe", {{"multivariate", 0}, {"startup_trials", 3}}});
  // By their defaults they learn only after 50 trials.
  cases.push_back({"nsga2_of_four", "nsga2", {{"population_size", 4}}});
  cases.push_back({"nsga3_of_four",
                   "nsga3",
                   {{"population_size", 4}, {"crossover", "spx"}, {"mutation", "polynomial"}}});
  return cases;
}

// A study that grows by a sampler's own suggestions.
class History {
 public:
  explicit History(const SearchSpace& space) : space_(space) {}

  std::optional<Parameters> Next(const Sampler& sampler, std::uint64_t seed) const {
    const auto number = static_cast<std::int64_t>(parameters_.size());
    Random random(MixSeed(seed, static_cast<std::uint64_t>(number)));
    return sampler.Suggest({space_, Direction::kMaximize, ended_, running_, number}, random);
  }

  void End(const Parameters& parameters, double value, bool pruned) {
    const auto number = static_cast<std::int64_t>(parameters_.size());
    parameters_.push_back(parameters);
    ended_.push_back({number, &parameters_.back(), value, pruned, number % 4});
  }

  void Start(const Parameters& parameters) {
    parameters_.push_back(parameters);
    running_.push_back(&parameters_.back());
  }

 private:
  const SearchSpace& space_;
  std::deque<Parameters> parameters_;
  std::vector<Observation> ended_;
  std::vector<const Parameters*> running_;
};

class SamplerContract : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Sampler> Make() const {
    auto made = MakeSampler(GetParam().sampler, GetParam().options);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  template <typename Check>
  void ForEachSpace(Check check) const {
    const auto sampler = Make();
    for (const char* json : kSpaces) {
      SCOPED_TRACE(json);
      const auto space = SearchSpace::FromJson(json);
      ASSERT_TRUE(space.ok()) << space.status();
      check(*sampler, *space);
    }
    SCOPED_TRACE("without parameters");
    check(*sampler, SearchSpace());
  }
};

INSTANTIATE_TEST_SUITE_P(All, SamplerContract, ::testing::ValuesIn(Cases()),
                         [](const auto& row) { return row.param.name; });

// Complete, pruned, failed and infinite trials in turn.
double ValueOfTrial(int i) {
  if (i % 5 == 3) return kNaN;
  if (i % 17 == 4) return std::numeric_limits<double>::infinity();
  if (i % 17 == 9) return -std::numeric_limits<double>::infinity();
  return std::sin(i);
}

TEST_P(SamplerContract, SuggestsValidParametersWhateverTheTrialsCameTo) {
  ForEachSpace([](const Sampler& sampler, const SearchSpace& space) {
    History history(space);
    for (int i = 0; i < 60; ++i) {
      const auto suggestion = history.Next(sampler, 1);
      if (!suggestion) break;
      ASSERT_TRUE(space.Validate(*suggestion).ok()) << space.Validate(*suggestion);
      std::size_t next = 0;
      for (const Parameter& parameter : *suggestion) {
        const std::optional<std::size_t> at = space.Find(parameter.name);
        ASSERT_TRUE(at && *at >= next) << parameter.name;
        next = *at + 1;
      }
      if (i % 7 == 6) {
        history.Start(*suggestion);
      } else {
        history.End(*suggestion, ValueOfTrial(i), i % 3 == 1);
      }
    }
  });
}

TEST(Samplers, TellWhatTheyDoAndTake) { ExpectTold(Samplers().Infos()); }

TEST_P(SamplerContract, HasAFirstSuggestion) {
  ForEachSpace([](const Sampler& sampler, const SearchSpace& space) {
    EXPECT_TRUE(History(space).Next(sampler, 3).has_value());
  });
}

TEST_P(SamplerContract, GoesOnWhenEveryTrialFailed) {
  ForEachSpace([](const Sampler& sampler, const SearchSpace& space) {
    History history(space);
    for (int i = 0; i < 15; ++i) {
      const auto suggestion = history.Next(sampler, 2);
      ASSERT_TRUE(suggestion.has_value() || space.Cardinality() || i >= 5);
      if (!suggestion) break;
      history.End(*suggestion, kNaN, i % 2 == 0);
    }
  });
}

TEST_P(SamplerContract, SameSeedAndInputGiveTheSameSuggestion) {
  ForEachSpace([](const Sampler& sampler, const SearchSpace& space) {
    History history(space);
    for (int i = 0; i < 25; ++i) {
      const auto suggestion = history.Next(sampler, 5);
      ASSERT_EQ(suggestion, history.Next(sampler, 5));
      if (!suggestion) break;
      history.End(*suggestion, ValueOfTrial(i), false);
    }
  });
}

TEST_P(SamplerContract, WhoDoesNotLearnDrawsAlikeWhateverTheTrialsCameTo) {
  // Where children could only be one parent again, genetic samplers draw at random.
  const SearchSpace space = *SearchSpace::FromJson(
      R"({"x": {"_type": "uniform", "_value": [-2, 3]}, "y": {"_type": "uniform", "_value": [0, 1]}})");
  const auto sampler = Make();
  History rising(space);
  History falling(space);
  bool alike = true;
  for (int i = 0; i < 80 && alike; ++i) {
    const auto a = rising.Next(*sampler, 1);
    const auto b = falling.Next(*sampler, 1);
    alike = a == b;
    if (!a || !b) break;
    rising.End(*a, i, false);
    falling.End(*b, -i, false);
  }
  EXPECT_EQ(alike, !sampler->learns());
}

TEST_P(SamplerContract, TriesAFiniteSpaceOnceAndThenStops) {
  ForEachSpace([](const Sampler& sampler, const SearchSpace& space) {
    const auto cardinality = space.Cardinality();
    if (!cardinality) return;
    History history(space);
    std::set<std::string> tried;
    for (std::uint64_t i = 0; i < *cardinality; ++i) {
      const auto suggestion = history.Next(sampler, 4);
      ASSERT_TRUE(suggestion.has_value());
      EXPECT_TRUE(tried.insert(ToJson(*suggestion)).second) << ToJson(*suggestion);
      if (i % 4 == 2) {
        history.Start(*suggestion);
      } else {
        history.End(*suggestion, ValueOfTrial(static_cast<int>(i)), false);
      }
    }
    EXPECT_FALSE(history.Next(sampler, 4).has_value());
  });
}

TEST_P(SamplerContract, PassesOverParametersThatAreNotOfTheSpace) {
  ForEachSpace([](const Sampler& sampler, const SearchSpace& space) {
    History history(space);
    history.Start({{"other", ParameterValue(1.0)}});
    for (int i = 0; i < 15; ++i) history.End({{"x", ParameterValue(1e9)}}, 1.0 * i, false);
    const auto suggestion = history.Next(sampler, 6);
    if (suggestion) {
      EXPECT_TRUE(space.Validate(*suggestion).ok());
    }
  });
}

}  // namespace
}  // namespace espalier
