#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier {
namespace {

const SearchSpace kSpace;

// Trials that end one after another, in the order of their numbers.
std::vector<Observation> Ended(const std::vector<double>& values) {
  std::vector<Observation> ended;
  for (const double value : values) {
    const std::int64_t number = std::ssize(ended);
    ended.push_back({.trial_number = number, .value = value, .at = Time{1000 + number}});
  }
  return ended;
}

// The reason to end the study; nullopt: it goes on.
std::optional<std::string> Judge(const std::vector<Observation>& ended, const Options& options,
                                 Direction direction = Direction::kMinimize) {
  const auto terminator = MakeTerminator("stagnation", options);
  EXPECT_TRUE(terminator.ok()) << terminator.status();
  const TerminatorVerdict verdict =
      (*terminator)->Judge({.space = kSpace, .direction = direction, .ended = ended});
  return verdict.ends ? std::optional(verdict.reason) : std::nullopt;
}

const Options kSoon = {{"trials", 2}, {"min_trials", 1}};

TEST(Stagnation, EndsWithFiguresWhenMoreThanSoManyTrialsBroughtNothing) {
  EXPECT_FALSE(Judge(Ended({0.5, 0.25, 0.3, 0.3}), kSoon));
  EXPECT_EQ(Judge(Ended({0.5, 0.25, 0.3, 0.3, 0.25}), kSoon),
            "3 complete trials have brought nothing better than 0.25, of trial 1");
  EXPECT_FALSE(Judge(Ended({0.5, 0.25, 0.3, 0.3, 0.24}), kSoon));
}

TEST(Stagnation, MaximisesWhereAsked) {
  EXPECT_FALSE(Judge(Ended({0.1, 0.2, 0.3, 0.4}), kSoon, Direction::kMaximize));
  EXPECT_TRUE(Judge(Ended({0.4, 0.3, 0.2, 0.1}), kSoon, Direction::kMaximize));
}

TEST(Stagnation, CountsNeitherPrunedNorFailedTrials) {
  std::vector<Observation> ended = Ended({0.5, 0.6, 0.6, 0.6});
  ended[1].pruned = true;
  EXPECT_FALSE(Judge(ended, kSoon));
  ended[1].pruned = false;
  ended[1].value = NAN;
  EXPECT_FALSE(Judge(ended, kSoon));
  ended[1].value = -HUGE_VAL;
  EXPECT_FALSE(Judge(ended, kSoon));
  ended[1].value = HUGE_VAL;
  EXPECT_TRUE(Judge(ended, kSoon));
}

// The trial of the lowest number took longest, and is the best.
TEST(Stagnation, GoesByWhenTrialsEnded) {
  std::vector<Observation> ended = Ended({0.1, 0.6, 0.6, 0.6, 0.6});
  EXPECT_TRUE(Judge(ended, kSoon));
  ended[0].at = Time{2000};
  EXPECT_FALSE(Judge(ended, kSoon));
}

TEST(Stagnation, EndsNoStudyOfFewTrials) {
  const Options options = {{"trials", 2}, {"min_trials", 6}};
  EXPECT_FALSE(Judge(Ended({0.1, 0.2, 0.2, 0.2, 0.2}), options));
  EXPECT_TRUE(Judge(Ended({0.1, 0.2, 0.2, 0.2, 0.2, 0.2}), options));
}

TEST(Stagnation, EndsWhereOptunasTerminatorEnds) {
  std::ifstream file(ESPALIER_OPTUNA_STAGNATION);
  std::vector<double> values;
  Direction direction = Direction::kMinimize;
  int ends = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "values") {
      std::string word;
      words >> word;
      direction = word == "minimize" ? Direction::kMinimize : Direction::kMaximize;
      values.clear();
      while (words >> word) values.push_back(word == "fail" ? NAN : std::stod(word));
    }
    if (kind != "ends") continue;
    double most = 0;
    double least = 0;
    std::string after;
    words >> most >> least >> after;
    std::string ours = "-";
    for (std::size_t n = 1; n <= values.size() && ours == "-"; ++n) {
      const std::vector<double> so_far(values.begin(),
                                       values.begin() + static_cast<std::ptrdiff_t>(n));
      if (Judge(Ended(so_far), {{"trials", most}, {"min_trials", least}}, direction))
        ours = std::to_string(n);
    }
    EXPECT_EQ(ours, after) << line;
    ends += after == "-" ? 0 : 1;
  }
  EXPECT_GT(ends, 20);
}

}  // namespace
}  // namespace espalier
