#include "tuner/core/population/bandit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "tuner/core/population/perturbation.h"

namespace espalier {
namespace {

// Members of three intervals of 10 steps, whose rates improve them.
class BanditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    space_ = *SearchSpace::FromJson(R"json({
        "lr": {"_type": "loguniform", "_value": [0.001, 1]},
        "net": {"_type": "choice", "_value": ["deep", "wide", "flat"]},
        "layers": {"_type": "randint", "_value": [1, 9]},
        "seed": {"_type": "randint", "_value": [0, 100]}})json");
    ASSERT_TRUE(CheckPerturbation(population_, space_).ok());
    Random random(3);
    for (int i = 0; i < 12; ++i) Add(space_.Sample(random));
  }
  // The nearer its rate to 0.03, the better; "wide" is better still.
  double Gain(const Parameters& parameters) const {
    const double distance = std::log(*NumberOf(*Find(parameters, "lr")) / 0.03);
    const bool wide = std::get<std::string>(*Find(parameters, "net")) == "wide";
    return -distance * distance + (wide ? 2 : 0);
  }
  void Add(Parameters parameters) {
    parameters_.push_back(std::move(parameters));
    const double gain = Gain(parameters_.back());
    std::vector<IntermediateValue>& points = points_.emplace_back();
    for (const std::int64_t step : {10, 20, 30}) {
      points.push_back({.step = step, .value = gain * static_cast<double>(step), .at = {}});
    }
    members_.push_back(
        {.curve = {.points = points}, .parameters = &parameters_.back(), .step = 30});
  }
  Parameters Explored(std::uint64_t seed = 1) {
    Random random(seed);
    return ExploreByBandit(
        population_, space_, Direction::kMaximize, members_, {.loser = 0, .winner = 1, .step = 30},
        [&](const Parameters& chosen) {
          return std::ranges::find(trained_, chosen) != trained_.end();
        },
        random);
  }

  PopulationSpec population_{
      .interval = 10, .parameters = {"lr", "net", "layers"}, .explore = Explore::kPb2};
  SearchSpace space_;
  std::deque<Parameters> parameters_;
  std::deque<std::vector<IntermediateValue>> points_;
  std::vector<PopulationMember> members_;
  std::vector<Parameters> trained_;
};

TEST_F(BanditTest, ChoosesWhatHasImprovedOthersAndLeavesTheRest) {
  for (int i = 0; i < 30; ++i) {
    Random random(static_cast<std::uint64_t>(100 + i));
    Add(space_.Sample(random));
  }
  double chosen = 0;
  double drawn = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Parameters explored = Explored(seed);
    EXPECT_TRUE(space_.Validate(explored).ok()) << space_.Validate(explored);
    EXPECT_EQ(*Find(explored, "seed"), *Find(parameters_[1], "seed"));
    chosen += Gain(explored) / 8;
    Random random(seed);
    drawn += Gain(space_.Sample(random)) / 8;
  }
  EXPECT_GT(chosen, drawn + 1);
}

TEST_F(BanditTest, FollowsFromMembersAndGenerator) {
  EXPECT_EQ(Explored(7), Explored(7));
  EXPECT_NE(Explored(7), Explored(8));
}

TEST_F(BanditTest, ScaleAndOutliersDoNotMatter) {
  const Parameters before = Explored();
  for (auto& points : points_) {
    for (IntermediateValue& point : points) point.value *= 1024;
  }
  EXPECT_EQ(Explored(), before);
  const auto worst = std::min_element(
      points_.begin(), points_.end(),
      [](const auto& a, const auto& b) { return a.front().value < b.front().value; });
  (*worst)[1].value *= 1e100;
  (*worst)[2].value *= 1e200;
  EXPECT_EQ(Explored(), before);
}

TEST_F(BanditTest, TakesIntoAccountWhatIsPending) {
  const Parameters first = Explored();
  parameters_.push_back(first);
  members_.push_back({.curve = {}, .parameters = &parameters_.back(), .parent = 1, .step = 30});
  EXPECT_NE(Explored(), first) << "one is trying that already";
}

TEST_F(BanditTest, NeedsNoHistory) {
  for (auto& points : points_) points.resize(1);
  for (std::size_t i = 0; i < members_.size(); ++i) members_[i].curve.points = points_[i];
  EXPECT_TRUE(space_.Validate(Explored()).ok());
  for (PopulationMember& member : members_) member.curve.points = {};
  EXPECT_TRUE(space_.Validate(Explored()).ok());
}

TEST_F(BanditTest, WhatDoesNotCountBreaksNothing) {
  for (auto& points : points_) points.back().value = NAN;
  EXPECT_TRUE(space_.Validate(Explored()).ok());
}

TEST_F(BanditTest, PassesOverWhatIsTrainedIfThereAreOthers) {
  population_.parameters = {"net"};
  std::vector<std::string> nets;
  for (int i = 0; i < 3; ++i) {
    trained_.push_back(Explored());
    nets.push_back(std::get<std::string>(*Find(trained_.back(), "net")));
  }
  EXPECT_EQ(nets.front(), "wide") << "what has improved others most";
  std::sort(nets.begin(), nets.end());
  EXPECT_EQ(nets, (std::vector<std::string>{"deep", "flat", "wide"}));
  EXPECT_EQ(Explored(), trained_.front()) << "all of them are trained";
}

TEST_F(BanditTest, AParameterOfOneValueIsLeft) {
  space_ = *SearchSpace::FromJson(R"json({"lr": {"_type": "choice", "_value": [0.5]}})json");
  population_.parameters = {"lr"};
  parameters_[1] = {{"lr", 0.5}};
  EXPECT_EQ(Explored(), parameters_[1]);
}

}  // namespace
}  // namespace espalier
