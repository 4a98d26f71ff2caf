// What the bounds of a Gaussian process say of recorded studies, and where these end by them,
// beside Optuna's: see tests/core/samplers/optuna/record_regret.py.

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "tests/core/samplers/optuna/recorded.h"
#include "tuner/core/samplers/gp/regret.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier {
namespace {

const espalier::testing::Recorded& Optuna() {
  static const espalier::testing::Recorded recorded(ESPALIER_RECORDED_REGRET);
  return recorded;
}

// A recorded study of uniform parameters in [0, 1].
class Recording {
 public:
  Recording(const std::string& name, Direction its_direction, std::size_t axes)
      : direction(its_direction) {
    std::vector<SearchSpace::Dimension> dimensions;
    for (std::size_t i = 0; i < axes; ++i) {
      dimensions.push_back({"x" + std::to_string(i), Uniform{0, 1}, std::nullopt});
    }
    const std::vector<double>& rows = Optuna()[name + ".trials"];
    for (auto row = rows.begin(); row != rows.end(); row += static_cast<std::ptrdiff_t>(axes) + 2) {
      Parameters& parameters = parameters_.emplace_back();
      auto number = row;
      for (const auto& dimension : dimensions) parameters.push_back({dimension.name, *number++});
      const std::int64_t n = std::ssize(trials);
      trials.push_back({.trial_number = n,
                        .parameters = &parameters,
                        .value = number[0],
                        .at = Time{n},
                        .standard_error = number[1]});
    }
    space = *SearchSpace::Make(std::move(dimensions));
  }

  std::span<const Observation> First(std::size_t count) const {
    return std::span(trials).first(count);
  }

  SearchSpace space;
  Direction direction;
  std::vector<Observation> trials;

 private:
  std::deque<Parameters> parameters_;
};

struct RecordedStudy {
  const char* name;
  Direction direction;
  std::size_t axes;
};

class StudiesAsOptunas : public ::testing::TestWithParam<RecordedStudy> {
 protected:
  // After so many trials more or less than under Optuna a study ends.
  static constexpr std::int64_t kTrialsOff = 3;

  // That a terminator ends the study about where Optuna's does (-1: not at all).
  void ExpectEnds(const std::string& terminator, const Options& options, double theirs) const {
    const auto made = *MakeTerminator(terminator, options);
    const std::int64_t all = std::ssize(recording_.trials);
    const std::int64_t end = theirs < 0 ? all + kTrialsOff + 1 : static_cast<std::int64_t>(theirs);
    std::int64_t ours = -1;
    for (std::int64_t n = 1; n <= all && ours < 0; ++n) {
      if (n < end - kTrialsOff && n % 8 != 0) continue;  // to take less time
      const TerminatorInput input{.space = recording_.space,
                                  .direction = recording_.direction,
                                  .ended = recording_.First(static_cast<std::size_t>(n)),
                                  .seed = static_cast<std::uint64_t>(n)};
      if (made->Judge(input).ends) ours = n;
    }
    EXPECT_NEAR(static_cast<double>(ours), theirs, theirs < 0 ? 0 : kTrialsOff) << terminator;
  }
  std::string name() const { return GetParam().name; }

  const Recording recording_{GetParam().name, GetParam().direction, GetParam().axes};
};

INSTANTIATE_TEST_SUITE_P(Studies, StudiesAsOptunas,
                         ::testing::Values(RecordedStudy{"study0", Direction::kMinimize, 2},
                                           RecordedStudy{"study1", Direction::kMaximize, 3},
                                           RecordedStudy{"study2", Direction::kMaximize, 2},
                                           RecordedStudy{"study3", Direction::kMinimize, 2}),
                         [](const auto& study) { return std::string(study.param.name); });

// Kernels are fitted in another way, and bounds looked up at other points.
TEST_P(StudiesAsOptunas, Bounds) {
  std::size_t i = 0;
  for (const std::size_t count : {20U, 30U, 45U, 60U}) {
    std::vector<const Observation*> trials;
    for (const Observation& trial : recording_.First(count)) trials.push_back(&trial);
    const SearchSpace& space = recording_.space;
    const Direction direction = recording_.direction;
    const double regret = Optuna()[name() + ".regret"].at(i);
    EXPECT_NEAR(samplers::gp::RegretBound(space, direction, trials, {}, 1, {}).value(), regret,
                0.05 * regret);
    const double change = Optuna()[name() + ".change"].at(i++);
    EXPECT_NEAR(samplers::gp::RegretChangeBound(space, direction, trials, {}, 1, {}).value(),
                change, 0.05 * change);
  }
}

TEST_P(StudiesAsOptunas, Ends) {
  const std::vector<double>& given = Optuna()[name() + ".given"];
  const std::vector<double>& theirs = Optuna()[name() + ".ends"];
  ExpectEnds("regret", {}, theirs.at(0));
  ExpectEnds("regret", {{"error", given.at(0)}}, theirs.at(1));
  ExpectEnds("emmr", {{"threshold_ratio", given.at(1)}}, theirs.at(2));
}

}  // namespace
}  // namespace espalier
