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
  EXPECT_FALSE(terminator->Judge({.space = kAnySpace, .ended = ended}));
  for (std::int64_t n = 0; n < 100; ++n) {
    ended.push_back({.trial_number = n, .parameters = &kNoParameters, .value = NAN, .at = Time{n}});
  }
  EXPECT_FALSE(terminator->Judge({.space = kAnySpace, .ended = ended}));
}

TEST_P(TerminatorContract, AnswersAlikeWhateverTheOrder) {
  const auto terminator = Make();
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Observation> ended(random.Below(80));
    for (std::size_t n = 0; n < ended.size(); ++n) {
      ended[n] = {.trial_number = static_cast<std::int64_t>(n),
                  .parameters = &kNoParameters,
                  .value = random.Below(10) == 0 ? NAN : random.Uniform(),
                  .pruned = random.Below(4) == 0,
                  .at = Time{static_cast<std::int64_t>(random.Below(50))}};
    }
    const Direction direction = random.Below(2) == 0 ? Direction::kMinimize : Direction::kMaximize;
    const auto first =
        terminator->Judge({.space = kAnySpace, .direction = direction, .ended = ended});
    std::ranges::reverse(ended);
    EXPECT_EQ(first,
              terminator->Judge({.space = kAnySpace, .direction = direction, .ended = ended}));
    EXPECT_FALSE(first && first->empty());
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
            "terminator \"stagnant\" is unknown; known are none, stagnation");
}

}  // namespace
}  // namespace espalier
