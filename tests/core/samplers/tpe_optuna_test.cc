// Holds TPE to what Optuna's makes of the same trials: optuna/record_tpe.py has recorded it.

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "absl/strings/str_split.h"
#include "tests/core/samplers/optuna/recorded.h"
#include "tuner/core/samplers/tpe/densities.h"

namespace espalier::samplers {
namespace {

using testing::Recorded;

constexpr int kRecordedTrials = 200;

// Where Optuna has integers with a step, ours are choices of numbers in order.
constexpr const char* kRecordedSpace = R"json({
  "u": {"_type": "uniform", "_value": [-5, 10]}, "l": {"_type": "loguniform", "_value": [1e-5, 1]},
  "i": {"_type": "randint", "_value": [0, 20]},
  "s": {"_type": "choice", "_value": [2, 5, 8, 11, 14, 17, 20]},
  "q": {"_type": "quniform", "_value": [0, 2, 0.25]},
  "w": {"_type": "qloguniform", "_value": [1, 200, 1]},
  "m": {"_type": "randint", "_value": [0, 1000000]},
  "c": {"_type": "choice", "_value": ["x", "y", "z", "zz"]},
  "n": {"_type": "choice", "_value": [
    {"_name": "A", "p": {"_type": "uniform", "_value": [0, 1]}},
    {"_name": "B", "b": {"_type": "randint", "_value": [1, 9]},
                   "k": {"_type": "choice", "_value": ["r", "t", "v"]}}]}})json";

const Recorded& RecordedTpe() {
  static const Recorded recorded(ESPALIER_RECORDED_TPE);
  return recorded;
}

// By its name in Optuna, which knows no conditions: that in its own object.
std::size_t DimensionNamed(const SearchSpace& space, std::string_view own_name) {
  for (std::size_t i = 0; i < space.dimensions().size(); ++i) {
    if (space.OwnName(i) == own_name) return i;
  }
  throw std::out_of_range(std::string(own_name));
}

// Steps are recorded as values, options of texts by number.
ParameterValue ValueFrom(const Distribution& distribution, double x) {
  if (const auto* choice = std::get_if<Choice>(&distribution)) {
    const bool numbers = std::holds_alternative<std::int64_t>(choice->options.front());
    if (numbers) return static_cast<std::int64_t>(x);
    return choice->options[static_cast<std::size_t>(x)];
  }
  if (std::holds_alternative<RandInt>(distribution)) return static_cast<std::int64_t>(x);
  return x;
}

// A recorded study.
class RecordedStudy {
 public:
  RecordedStudy(std::string name, std::vector<Direction> directions)
      : name_(std::move(name)),
        space_(*SearchSpace::FromJson(kRecordedSpace)),
        directions_(std::move(directions)) {
    for (std::size_t i = 0; i < kRecordedTrials; ++i) AddTrial(i);
  }

  SamplerInput Input() const {
    return {.space = space_,
            .direction = directions_[0],
            .ended = ended_,
            .running = running_,
            .trial_number = kRecordedTrials,
            .other_directions = std::span(directions_).subspan(1)};
  }

  std::vector<double> Column(const std::string& column) const {
    return RecordedTpe()[name_ + "." + column];
  }

  // The recorded points, on these axes.
  std::vector<Point> Points(const PlacedTrials& placed,
                            const std::vector<std::size_t>& axes) const {
    std::vector<Point> points(Column("at.u").size());
    for (const std::size_t axis : axes) {
      const std::vector<double> at = Column("at." + std::string(space_.OwnName(axis)));
      for (std::size_t i = 0; i < at.size(); ++i) {
        const Distribution& distribution = space_.dimensions()[axis].distribution;
        points[i].push_back(placed.axes()[axis].Place(ValueFrom(distribution, at[i])));
      }
    }
    return points;
  }

  const SearchSpace& space() const { return space_; }

 private:
  void AddTrial(std::size_t number) {
    Parameters& parameters = parameters_.emplace_back();
    for (std::size_t i = 0; i < space_.dimensions().size(); ++i) {
      const double x = Column(std::string(space_.OwnName(i)))[number];
      const auto& [name, distribution, condition] = space_.dimensions()[i];
      if (!std::isnan(x)) parameters.push_back({name, ValueFrom(distribution, x)});
    }
    const double state = Column("state")[number];
    constexpr double kRunning = 0;
    constexpr double kPruned = 2;
    if (state == kRunning) {
      running_.push_back(&parameters);
      return;
    }
    Observation trial{.trial_number = static_cast<std::int64_t>(number),
                      .parameters = &parameters,
                      .value = Column("value0")[number],
                      .pruned = state == kPruned,
                      .last_step = static_cast<std::int64_t>(Column("step")[number])};
    std::vector<double>& others = numbers_.emplace_back();
    for (std::size_t k = 1; k < directions_.size(); ++k) {
      others.push_back(Column("value" + std::to_string(k))[number]);
    }
    trial.other_values = others;
    std::vector<double>& constraints = numbers_.emplace_back();
    for (const char* constraint : {"constraint_a", "constraint_b"}) {
      const double x = Column(constraint)[number];
      if (!std::isnan(x)) constraints.push_back(x);
    }
    trial.constraints = constraints;
    ended_.push_back(trial);
  }

  std::string name_;
  SearchSpace space_;
  std::vector<Direction> directions_;
  std::deque<Parameters> parameters_;
  std::deque<std::vector<double>> numbers_;
  std::vector<Observation> ended_;
  std::vector<const Parameters*> running_;
};

struct Compared {
  SplitSettings split{.failed = false};
  ParzenSettings parzen;
  bool liar = true;
};

void ExpectSplit(const RecordedStudy& study, const TpeSplit& split) {
  std::vector<double> good;
  std::vector<double> bad;
  for (std::size_t i = 0; i < split.sides.size(); ++i) {
    const auto number = static_cast<double>(study.Input().ended[i].trial_number);
    if (split.sides[i] == TpeSplit::Side::kGood) good.push_back(number);
    if (split.sides[i] == TpeSplit::Side::kBad) bad.push_back(number);
  }
  EXPECT_EQ(good, study.Column("good_trials"));
  // Optuna has running ones among the bad.
  std::vector<double> recorded = study.Column("bad_trials");
  const std::vector<double> state = study.Column("state");
  std::erase_if(recorded, [&](double n) { return state[static_cast<std::size_t>(n)] == 0; });
  EXPECT_EQ(bad, recorded);
}

void ExpectDensities(const RecordedStudy& study, const std::vector<std::string>& groups,
                     const Compared& compared = {}) {
  const SamplerInput input = study.Input();
  const TpeSplit split = SplitTrials(input, compared.split);
  ExpectSplit(study, split);
  PlacedTrials placed(study.space(), /*order_numbers=*/true);
  placed.Follow(input.ended);
  TpeTrials trials{
      .ended = placed, .split = split, .running = {}, .good_are_even = input.objectives() > 1};
  if (compared.liar) {
    for (const Parameters* running : input.running) {
      trials.running.push_back(placed.PlacesOf(*running));
    }
  }
  for (const std::string& group : groups) {
    SCOPED_TRACE(group);
    std::vector<std::size_t> axes;
    for (const std::string& name : std::vector<std::string>(absl::StrSplit(group, '+'))) {
      axes.push_back(DimensionNamed(study.space(), name));
    }
    const TpeDensities densities = DensitiesOf(trials, axes, compared.parzen);
    const std::vector<Point> points = study.Points(placed, axes);
    const std::vector<double> good = densities.good.LogDensities(points);
    const std::vector<double> bad = densities.bad.LogDensities(points);
    const std::vector<double> ratios = densities.Ratios(points);
    const std::vector<double> good_there = study.Column(group + ".good");
    const std::vector<double> bad_there = study.Column(group + ".bad");
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(good[i], good_there[i], 1e-6) << i;
      EXPECT_NEAR(bad[i], bad_there[i], 1e-6) << i;
      EXPECT_NEAR(ratios[i], good_there[i] - bad_there[i], 1e-6) << i;
    }
  }
}

const std::string kAlways = "u+l+i+s+q+w+m+c+n";
const std::vector<std::string> kEach = {"u", "l", "i", "s", "q", "w", "m", "c", "n", "p", "b", "k"};

std::vector<std::string> AndEach(std::vector<std::string> groups) {
  groups.insert(groups.end(), kEach.begin(), kEach.end());
  return groups;
}

TEST(TpeBesideOptuna, HasItsDensitiesForOneObjective) {
  ExpectDensities(RecordedStudy("one", {Direction::kMinimize}), AndEach({kAlways, "b+k"}));
}

TEST(TpeBesideOptuna, HasItsDensitiesUnderConstraints) {
  ExpectDensities(RecordedStudy("kept", {Direction::kMaximize}), AndEach({kAlways}));
}

TEST(TpeBesideOptuna, HasItsDensitiesForSeveralObjectives) {
  ExpectDensities(RecordedStudy("two", {Direction::kMinimize, Direction::kMaximize}),
                  AndEach({kAlways}));
  ExpectDensities(
      RecordedStudy("three", {Direction::kMinimize, Direction::kMaximize, Direction::kMinimize}),
      {kAlways});
}

TEST(TpeBesideOptuna, HasItsDensitiesWithItsOptions) {
  ExpectDensities(RecordedStudy("options", {Direction::kMinimize}), {kAlways, "p"},
                  {.split = {.gamma = 0.3, .most_good = 40, .failed = false},
                   .parzen = {.prior_weight = 0.3, .magic_clip = false, .endpoints = true},
                   .liar = false});
}

}  // namespace
}  // namespace espalier::samplers
