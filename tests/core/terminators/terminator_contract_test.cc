// What every row of the table of terminators must keep to.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/plugin_rows.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;

const Parameters kNoParameters;
const SearchSpace kAnySpace;

class TerminatorContract : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Terminator> Make() {
    auto terminator = MakeTerminator(GetParam(), {});
    EXPECT_TRUE(terminator.ok()) << terminator.status();
    return *std::move(terminator);
  }
};

TEST_P(TerminatorContract, EndsNoStudyThatHasNothingOrNothingButFailures) {
  const auto terminator = Make();
  std::vector<Observation> ended;
  EXPECT_FALSE(terminator->Judge({.space = kAnySpace, .ended = ended}).ends);
  for (std::int64_t n = 0; n < 100; ++n) {
    ended.push_back({.trial_number = n, .parameters = &kNoParameters, .value = NAN, .at = Time{n}});
  }
  EXPECT_FALSE(terminator->Judge({.space = kAnySpace, .ended = ended}).ends);
}

TEST_P(TerminatorContract, AnswersAlikeWhateverTheOrder) {
  const auto terminator = Make();
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"x": {"_type": "uniform", "_value": [0, 1]}})");
  EXPECT_TRUE(terminator->Fits(space).ok());
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Parameters> parameters(random.Below(80));
    std::vector<Observation> ended(parameters.size());
    for (std::size_t n = 0; n < ended.size(); ++n) {
      parameters[n] = space.Sample(random);
      ended[n] = {.trial_number = static_cast<std::int64_t>(n),
                  .parameters = &parameters[n],
                  .value = random.Below(10) == 0 ? NAN : random.Uniform(),
                  .pruned = random.Below(4) == 0,
                  .at = Time{static_cast<std::int64_t>(random.Below(50))},
                  .standard_error = random.Below(4) == 0 ? NAN : random.Uniform()};
    }
    const Direction direction = random.Below(2) == 0 ? Direction::kMinimize : Direction::kMaximize;
    const TerminatorInput input{.space = space, .direction = direction, .ended = ended, .seed = 7};
    if (terminator->Work(input) > 0 && round % 20 != 0) continue;  // which would take minutes
    const TerminatorVerdict first = terminator->Judge(input);
    std::ranges::reverse(ended);
    const TerminatorVerdict second = terminator->Judge(input);
    EXPECT_EQ(first.ends, second.ends);
    EXPECT_EQ(first.reason, second.reason);
    EXPECT_FALSE(first.ends && first.reason.empty());
  }
}

TEST_P(TerminatorContract, NamesUnknownOption) {
  const auto terminator = MakeTerminator(GetParam(), {{"no_such_option", 1}});
  EXPECT_EQ(terminator.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(terminator.status().message()), HasSubstr("\"no_such_option\""));
}

INSTANTIATE_TEST_SUITE_P(All, TerminatorContract, ::testing::ValuesIn(Terminators().Names()),
                         [](const auto& row) { return row.param; });

TEST(Terminators, TellWhatTheyDoAndTake) { ExpectTold(Terminators().Infos()); }

TEST(MakeTerminator, NamesUnknownTerminatorAndListsTheKnown) {
  EXPECT_EQ(std::string(MakeTerminator("stagnant", {}).status().message()),
            "terminator \"stagnant\" is unknown; known are none, stagnation, regret, emmr");
}

}  // namespace
}  // namespace espalier
