#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

const char* const kFiniteSpace = R"({
  "rule": {"_type": "choice", "_value": [
    {"_name": "none"}, {"_name": "ema", "rate": {"_type": "quniform", "_value": [0, 1, 0.25]}}]},
  "layers": {"_type": "randint", "_value": [1, 4]}})";

std::vector<Parameters> AllSuggested(const SearchSpace& space, std::uint64_t seed) {
  const auto sampler = *MakeSampler("brute_force", {});
  std::deque<Parameters> tried;
  std::vector<const Parameters*> running;
  while (true) {
    const auto number = static_cast<std::int64_t>(tried.size());
    Random random(MixSeed(seed, tried.size()));
    const auto next = sampler->Suggest({space, Direction::kMinimize, {}, running, number}, random);
    if (!next) break;
    running.push_back(&tried.emplace_back(*next));
  }
  return {tried.begin(), tried.end()};
}

TEST(BruteForceSampler, TriesEachConfigurationOnceInAnOrderOfItsSeed) {
  const SearchSpace space = *SearchSpace::FromJson(kFiniteSpace);
  const std::vector<Parameters> one = AllSuggested(space, 1);
  const std::vector<Parameters> other = AllSuggested(space, 2);
  std::set<std::string> distinct;
  for (const Parameters& parameters : one) {
    EXPECT_TRUE(space.Validate(parameters).ok());
    distinct.insert(ToJson(parameters));
  }
  EXPECT_EQ(distinct.size(), 18U);  // (1 + 5) * 3
  EXPECT_EQ(one.size(), 18U);
  EXPECT_EQ(one, AllSuggested(space, 1));
  EXPECT_EQ(other.size(), 18U);
  EXPECT_NE(one, other);
}

TEST(BruteForceSampler, BeginsWithAnyConfigurationAlike) {
  const SearchSpace space = *SearchSpace::FromJson(kFiniteSpace);
  const auto sampler = *MakeSampler("brute_force", {});
  std::map<std::string, int> drawn;
  for (std::uint64_t seed = 0; seed < 3600; ++seed) {
    Random random(seed);
    ++drawn[ToJson(*sampler->Suggest({space, Direction::kMinimize, {}, {}, 0}, random))];
  }
  EXPECT_EQ(drawn.size(), 18U);
  for (const auto& [parameters, times] : drawn) EXPECT_NEAR(times, 200, 60) << parameters;
}

std::string Refusal(const char* space_json) {
  const SearchSpace space = *SearchSpace::FromJson(space_json);
  return std::string((*MakeSampler("brute_force", {}))->Fits(space).message());
}

TEST(BruteForceSampler, RefusesValuesWithoutEndByName) {
  EXPECT_EQ(Refusal(kFiniteSpace), "");
  EXPECT_EQ(Refusal(R"({"n": {"_type": "randint", "_value": [0, 2]},
                        "lr": {"_type": "loguniform", "_value": [1e-4, 1]}})"),
            "sampler \"brute_force\" tries every value, and there is no end to those of \"lr\" "
            "(loguniform): give it a qloguniform or choice, or the sampler \"grid\", whose "
            "\"points\" are values of each such parameter");
  EXPECT_EQ(Refusal(R"({"x": {"_type": "uniform", "_value": [0, 1]}})"),
            "sampler \"brute_force\" tries every value, and there is no end to those of \"x\" "
            "(uniform): give it a quniform, randint or choice, or the sampler \"grid\", whose "
            "\"points\" are values of each such parameter");
  EXPECT_EQ(Refusal(R"({"a": {"_type": "randint", "_value": [0, 1000000000]},
                        "b": {"_type": "randint", "_value": [0, 1000000000]}})"),
            "sampler \"brute_force\" tries every configuration, and the space has more than "
            "9007199254740992: give \"random\", which does not repeat any either");
}

}  // namespace
}  // namespace espalier
