// The genetic samplers beside Optuna's (optuna/record_nsga.py), and what they promise by
// themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/core/samplers/recorded_losses.h"
#include "tuner/core/samplers/children.h"
#include "tuner/core/samplers/reference_lines.h"

namespace espalier::samplers::nsga_test {
namespace {

using espalier::testing::LossesIn;
using espalier::testing::RecordedNsga;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

using Numbers = std::vector<std::int64_t>;

SearchSpace SpaceOf(const char* json) { return *SearchSpace::FromJson(json); }

constexpr char kUnitSpace[] = R"({"x": {"_type": "uniform", "_value": [0, 1]}})";

double NumberIn(const Parameters& parameters, std::string_view name) {
  return std::get<double>(*Find(parameters, name));
}

// A study whose trials ended one after the other.
class History {
 public:
  History(SearchSpace space, std::vector<Direction> directions)
      : space_(std::move(space)), directions_(std::move(directions)) {}

  // The observation may be changed until the next is added.
  Observation& End(const Parameters& parameters, const std::vector<double>& values) {
    const auto number = std::ssize(ended_);
    parameters_.push_back(parameters);
    values_.push_back(values);
    ended_.push_back({.trial_number = number,
                      .parameters = &parameters_.back(),
                      .value = values.front(),
                      .other_values = std::span(values_.back()).subspan(1),
                      .at = Time{1000 * number}});
    return ended_.back();
  }
  Observation& End(double x, const std::vector<double>& values) {
    return End(Parameters{{"x", x}}, values);
  }
  void Constrain(const std::vector<double>& constraints) {
    values_.push_back(constraints);
    ended_.back().constraints = values_.back();
  }

  SamplerInput Input() const {
    return {.space = space_,
            .direction = directions_.front(),
            .ended = ended_,
            .running = {},
            .trial_number = std::ssize(ended_),
            .other_directions = std::span(directions_).subspan(1)};
  }
  std::vector<Observation>& ended() { return ended_; }

 private:
  SearchSpace space_;
  std::vector<Direction> directions_;
  std::deque<Parameters> parameters_;
  std::deque<std::vector<double>> values_;
  std::vector<Observation> ended_;
};

// As nsga2's.
std::vector<std::size_t> ByCrowding(const Selection& selection) {
  return LeastCrowded(ValuesOf(selection.front, selection.directions.size()), selection.count);
}

Numbers ParentsAmong(const History& history, std::size_t size) {
  Numbers numbers;
  for (const Individual& parent : ParentsOf(history.Input(), size, ByCrowding)) {
    numbers.push_back(parent.trial->trial_number);
  }
  return numbers;
}

// ---- parents ------------------------------------------------------------------------------------

void ExpectOptunasParents(const std::vector<Direction>& directions, std::size_t constraints) {
  constexpr std::size_t kSize = 20;
  const std::string name = absl::StrCat("parents.", directions.size());
  const std::vector<double>& values = RecordedNsga()[name + ".values"];
  const std::vector<double>& numbers = RecordedNsga()[name + ".numbers"];
  History history(SpaceOf(kUnitSpace), directions);
  for (std::size_t trial = 0; trial < values.size() / directions.size(); ++trial) {
    const auto of_trial = std::span(values).subspan(trial * directions.size(), directions.size());
    history.End(0.5, {of_trial.begin(), of_trial.end()});
    if (constraints > 0) {
      const std::vector<double>& all = RecordedNsga()[name + ".constraints"];
      const auto own = std::span(all).subspan(trial * constraints, constraints);
      history.Constrain({own.begin(), own.end()});
    }
    if ((trial + 1) % kSize != 0) continue;
    const auto theirs = std::span(numbers).subspan(trial + 1 - kSize, kSize);
    ASSERT_EQ(ParentsAmong(history, kSize), Numbers(theirs.begin(), theirs.end()))
        << trial + 1 << " trials";
  }
}

TEST(Nsga2, ParentsAreOptunas) {
  ExpectOptunasParents({Direction::kMinimize}, 0);
  ExpectOptunasParents({Direction::kMinimize, Direction::kMaximize}, 0);
}

TEST(Nsga2, ParentsUnderConstraintsAreOptunas) {
  ExpectOptunasParents({Direction::kMinimize, Direction::kMaximize, Direction::kMinimize}, 2);
}

TEST(Parents, AreOfWholeGenerationsInTheOrderOfResults) {
  History history(SpaceOf(kUnitSpace), {Direction::kMinimize});
  for (const double value : {4.0, 3.0, 2.0, 1.0, 0.0}) history.End(0.5, {value});
  EXPECT_THAT(ParentsAmong(history, 2), ElementsAre(2, 3));
  EXPECT_THAT(ParentsAmong(history, 6), ElementsAre());
  // The last result came first: the fourth trial is of no whole generation then.
  history.ended()[4].at = Time{-1};
  EXPECT_THAT(ParentsAmong(history, 2), ElementsAre(4, 2));
  std::reverse(history.ended().begin(), history.ended().end());
  EXPECT_THAT(ParentsAmong(history, 2), ElementsAre(4, 2));
}

TEST(Parents, AreBadWhoWerePrunedOrFailedOrHaveNoRealValue) {
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    const double sign = direction == Direction::kMinimize ? 1 : -1;
    History history(SpaceOf(kUnitSpace), {direction});
    history.End(0.5, {sign * 9});
    history.End(0.5, {sign * 0}).pruned = true;
    history.ended().back().last_step = 3;
    history.End(0.5, {std::nan("")});
    history.End(0.5, {-sign * INFINITY});
    history.End(0.5, {sign * 1}).pruned = true;
    history.ended().back().last_step = 5;
    history.End(0.5, {sign * INFINITY});
    history.End(7, {0});  // not of the space
    // Of four that take part: the complete ones, then the pruned one that got further.
    EXPECT_THAT(ParentsAmong(history, 4), UnorderedElementsAre(0, 1, 4, 5));
    history.End(0.5, {sign * 8});
    history.End(0.5, {sign * 7}).pruned = true;
    history.End(0.5, {sign * 6}).pruned = true;
    history.End(0.5, {sign * 5}).pruned = true;
    EXPECT_THAT(ParentsAmong(history, 4), UnorderedElementsAre(0, 4, 5, 7));
  }
}

TEST(Parents, KeepToConstraintsBeforeAnythingElse) {
  History history(SpaceOf(kUnitSpace), {Direction::kMinimize, Direction::kMinimize});
  history.End(0.5, {0, 0});
  history.Constrain({0.5, -1});
  history.End(0.5, {9, 9});
  history.Constrain({0, -3});
  history.End(0.5, {0, 0});
  history.Constrain({std::nan(""), -3});
  history.End(0.5, {8, 8});  // has told none
  EXPECT_THAT(ParentsAmong(history, 4), UnorderedElementsAre(0, 1, 2, 3));
  const Population all = ParentsOf(history.Input(), 4, ByCrowding);
  const auto preferred = [&](std::size_t a, std::size_t b) {
    return Preferred(all[a], all[b], {Direction::kMinimize, Direction::kMinimize});
  };
  EXPECT_TRUE(preferred(3, 1));
  EXPECT_TRUE(preferred(1, 0));
  EXPECT_TRUE(preferred(0, 2));
  EXPECT_FALSE(preferred(0, 1));
  for (int i = 0; i < 2; ++i) history.End(0.5, {7, 7});
  for (int i = 0; i < 2; ++i) {
    history.End(0.5, {0, 0});
    history.Constrain({1});
  }
  EXPECT_THAT(ParentsAmong(history, 4), UnorderedElementsAre(1, 3, 4, 5));
}

// ---- reference lines ----------------------------------------------------------------------------

TEST(ReferenceLines, AreOptunas) {
  const std::size_t divisions[] = {5, 3, 2};
  for (const std::size_t objectives : {2U, 3U, 4U}) {
    const std::string name = absl::StrCat("lines.", objectives, ".");
    SCOPED_TRACE(name);
    const Losses points = LossesIn(RecordedNsga()[name + "points"], objectives);
    const Losses ours = ReferencePoints(objectives, divisions[objectives - 2]);
    ASSERT_EQ(ours.size(), points.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(std::equal(ours[i].begin(), ours[i].end(), points[i].begin())) << i;
    }
    const Losses normalized = Normalized(LossesIn(RecordedNsga()[name + "losses"], objectives));
    const Losses theirs = LossesIn(RecordedNsga()[name + "normalized"], objectives);
    const std::vector<NearestLine> lines = NearestLines(normalized, points);
    ASSERT_EQ(lines.size(), theirs.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (std::size_t k = 0; k < objectives; ++k) {
        EXPECT_NEAR(normalized[i][k], theirs[i][k], 1e-9) << i;
      }
      EXPECT_EQ(static_cast<double>(lines[i].point), RecordedNsga()[name + "closest"][i]) << i;
      EXPECT_NEAR(lines[i].distance, RecordedNsga()[name + "distances"][i], 1e-9) << i;
    }
  }
}

TEST(ReferenceLines, TakeEachRowAsOftenAsOptuna) {
  constexpr std::size_t kRounds = 4000, kFirst = 10, kCount = 12;
  for (const std::size_t objectives : {2U, 3U, 4U}) {
    const std::string name = absl::StrCat("lines.", objectives, ".");
    const std::vector<double>& taken = RecordedNsga()[name + "taken"];
    std::vector<NearestLine> lines;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      lines.push_back({static_cast<std::size_t>(RecordedNsga()[name + "closest"][i]),
                       RecordedNsga()[name + "distances"][i]});
    }
    std::vector<double> ours(taken.size());
    for (std::size_t round = 0; round < kRounds; ++round) {
      Random random(round);
      const auto rows = ChooseByLines(lines, kFirst, kCount, random);
      ASSERT_EQ(std::set<std::size_t>(rows.begin(), rows.end()).size(), kCount);
      for (const std::size_t row : rows) ours[row] += 1.0 / kRounds;
    }
    // Four deviations of the difference of two shares of 4,000.
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(ours[i], taken[i], 0.045) << name << i;
  }
}

TEST(ReferenceLines, StandWhereNothingDiffersOrIsFinite) {
  const Losses same = Normalized(LossesIn({3, 3, 3, 3}, 2));
  EXPECT_THAT(std::vector<double>(same[1].begin(), same[1].end()), ElementsAre(0, 0));
  const Losses infinite = Normalized(LossesIn({INFINITY, 1, INFINITY, 2}, 2));
  EXPECT_THAT(std::vector<double>(infinite[1].begin(), infinite[1].end()), ElementsAre(0, 1));
  EXPECT_EQ(ReferencePoints(1, 3).size(), 1U);
  EXPECT_EQ(ReferencePoints(3, 12).size(), 91U);
  EXPECT_EQ(ReferencePoints(12, 100).size(), 1365U) << "four divisions";
  EXPECT_EQ(ReferencePointCount(12, 100), 1365);
}

// Two generations on one front, of which the lines meet the second.
TEST(ReferencePoints, AreThoseThatAreGiven) {
  constexpr std::size_t kSize = 8;
  History history(SpaceOf(kUnitSpace), {Direction::kMinimize, Direction::kMinimize});
  std::vector<std::vector<double>> points;
  for (std::size_t i = 0; i < kSize; ++i) {
    const double x = static_cast<double>(i) / (kSize - 1);
    history.End(x, {x, 1 - x});
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    const double x = (static_cast<double>(i) + 0.3) / kSize;
    history.End(x, {x, 1 - x});
    points.push_back({10 * x, 10 - 10 * x});
  }
  const auto of_the_second = [&](const Options& points_option) {
    Options options = {
        {"population_size", kSize}, {"mutation_probability", 1e-300}, {"crossover_probability", 0}};
    options.insert(points_option.begin(), points_option.end());
    const auto sampler = *MakeSampler("nsga3", options);
    int count = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      Random random(seed);
      const double x = NumberIn(*sampler->Suggest(history.Input(), random), "x");
      count += std::any_of(points.begin(), points.end(),
                           [x](const auto& point) { return std::abs(point[0] - 10 * x) < 1e-9; });
    }
    return count;
  };
  EXPECT_EQ(of_the_second({{"reference_points", OptionValue::OfRows(points)}}), 100);
  EXPECT_LT(of_the_second({}), 90);
}

TEST(ReferencePoints, AreRefusedWhereNoLineGoesThroughThem) {
  const auto why_not = [](std::vector<std::vector<double>> rows, int divisions = 3) {
    return std::string(
        MakeSampler("nsga3", {{"divisions", divisions},
                              {"reference_points", OptionValue::OfRows(std::move(rows))}})
            .status()
            .message());
  };
  EXPECT_EQ(why_not({{1, 0}, {0, 1}}), "");
  EXPECT_EQ(why_not({{1, 0}, {0, 0}}),
            "sampler \"nsga3\": option \"reference_points\" needs numbers of at least 0, and one "
            "above it in each, got [[0, 0]]");
  EXPECT_EQ(why_not({{1, 0}, {0.5, -1}}),
            "sampler \"nsga3\": option \"reference_points\" needs numbers of at least 0, and one "
            "above it in each, got [[0.5, -1]]");
  EXPECT_EQ(why_not({{1, 0}, {1}}),
            "sampler \"nsga3\": option \"reference_points\" needs lists of equally many numbers, "
            "got [[1, 0], [1]]");
  EXPECT_EQ(why_not({{1, 0}}, 4),
            "sampler \"nsga3\": option \"divisions\" needs 3 where reference_points are given, "
            "got 4");
  EXPECT_EQ(why_not(std::vector<std::vector<double>>(2001, {1, 0})),
            "sampler \"nsga3\": option \"reference_points\" needs at most 2000, got 2001");
  const auto sampler =
      *MakeSampler("nsga3", {{"reference_points", OptionValue::OfRows({{1, 0, 0}, {0, 1, 0}})}});
  EXPECT_TRUE(sampler->FitsObjectives(3).ok());
  EXPECT_EQ(sampler->FitsObjectives(2).message(),
            "option \"reference_points\" has points of 3 numbers, and there are 2 objectives");
}

// ---- children -----------------------------------------------------------------------------------

constexpr char kOptunasSpace[] = R"({
  "x": {"_type": "uniform", "_value": [0, 1]}, "y": {"_type": "uniform", "_value": [0, 1]},
  "z": {"_type": "uniform", "_value": [0, 1]},
  "c": {"_type": "choice", "_value": ["p", "q", "r"]}})";

constexpr Breeding kBreeding{.population_size = 12,
                             .crossover = Crossover::kUniform,
                             .crossover_probability = 0.9,
                             .swapping_probability = 0.3,
                             .mutation_probability = 1e-300,
                             .mutation = Mutation::kUniform};

History OptunasParents() {
  const std::vector<double>& parents = RecordedNsga()["children.parents"];
  const std::vector<double>& values = RecordedNsga()["children.values"];
  History history(SpaceOf(kOptunasSpace), {Direction::kMinimize, Direction::kMinimize});
  for (std::size_t i = 0; i < parents.size() / 4; ++i) {
    const auto option = std::string("pqr")[static_cast<std::size_t>(parents[4 * i + 3])];
    history.End(Parameters{{"x", parents[4 * i]},
                           {"y", parents[4 * i + 1]},
                           {"z", parents[4 * i + 2]},
                           {"c", std::string(1, option)}},
                {values[2 * i], values[2 * i + 1]});
  }
  return history;
}

// The share of them at or below each point of the grid, beside Optuna's.
void ExpectSpread(const std::vector<double>& places, const std::string& name, double near) {
  const std::vector<double>& grid = RecordedNsga()["children.grid"];
  const std::vector<double>& theirs = RecordedNsga()[name];
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const auto below = std::count_if(places.begin(), places.end(),
                                     [&](double place) { return place <= grid[i] + 1e-9; });
    EXPECT_NEAR(static_cast<double>(below) / static_cast<double>(places.size()), theirs[i], near)
        << name << " at " << grid[i];
  }
}

// `near` is four deviations of what the shares of `count` of ours and of Optuna's 6,000 or 24,000
// differ by.
void ExpectOptunasChildren(const Breeding& breeding, const std::string& crossover, int count = 4000,
                           double near = 0.04) {
  const std::string name = "children." + crossover;
  const History history = OptunasParents();
  const Population parents = ParentsOf(history.Input(), breeding.population_size, ByCrowding);
  std::vector<double> x, y, z, sum, difference;
  std::vector<double> options(3);
  Random random(11);
  for (int i = 0; i < count; ++i) {
    const Parameters child = ChildOf(history.Input(), parents, breeding, random);
    x.push_back(NumberIn(child, "x"));
    y.push_back(NumberIn(child, "y"));
    z.push_back(NumberIn(child, "z"));
    sum.push_back((x.back() + y.back()) / 2);
    difference.push_back((x.back() - y.back()) / 2 + 0.5);
    const char option = std::get<std::string>(*Find(child, "c"))[0];
    options[static_cast<std::size_t>(option - 'p')] += 1.0 / count;
  }
  ExpectSpread(x, name + ".x", near);
  ExpectSpread(y, name + ".y", near);
  ExpectSpread(z, name + ".z", near);
  ExpectSpread(sum, name + ".sum", near);
  ExpectSpread(difference, name + ".difference", near);
  if (breeding.mutation == Mutation::kPolynomial) return;  // Optuna draws options anew elsewhere
  for (std::size_t i = 0; i < options.size(); ++i) {
    EXPECT_NEAR(options[i], RecordedNsga()[name + ".c"][i], 0.04) << name;
  }
}

TEST(Children, AreSpreadAsOptunas) {
  const char* const names[] = {"uniform", "blx_alpha", "spx", "sbx", "vsbx", "undx"};
  for (std::size_t i = 0; i < std::size(names); ++i) {
    Breeding breeding = kBreeding;
    breeding.crossover = static_cast<Crossover>(i);
    ExpectOptunasChildren(breeding, names[i]);
  }
}

TEST(Children, MutateByThePolynomialAsOptunas) {
  Breeding breeding = kBreeding;
  breeding.mutation_probability = 1;
  breeding.mutation = Mutation::kPolynomial;
  ExpectOptunasChildren(breeding, "polynomial");
}

// By one option each, which spreads them otherwise than the defaults do.
TEST(Children, AreSpreadByOptionsAsOptunas) {
  const std::pair<const char*, Options> cases[] = {
      {"blx_alpha.alpha", {{"crossover", "blx_alpha"}, {"alpha", 1.5}}},
      {"spx.epsilon", {{"crossover", "spx"}, {"epsilon", 1.2}}},
      {"sbx.eta", {{"crossover", "sbx"}, {"eta", 0}}},
      {"sbx.genes", {{"crossover", "sbx"}, {"eta", 0}, {"child_gene_probability", 1}}},
      {"sbx.exchange",
       {{"crossover", "sbx"},
        {"eta", 0},
        {"child_gene_probability", 1},
        {"uniform_crossover_probability", 0}}},
      {"vsbx.eta", {{"crossover", "vsbx"}, {"eta", 4}}},
      {"vsbx.genes", {{"crossover", "vsbx"}, {"eta", 4}, {"child_gene_probability", 1}}},
      {"vsbx.exchange",
       {{"crossover", "vsbx"},
        {"child_gene_probability", 1},
        {"uniform_crossover_probability", 0}}},
      {"undx.xi", {{"crossover", "undx"}, {"sigma_xi", 1.2}}},
      {"undx.eta", {{"crossover", "undx"}, {"sigma_eta", 1}}},
      {"polynomial.eta",
       {{"mutation", "polynomial"}, {"mutation_eta", 3}, {"mutation_probability", 1}}}};
  for (const auto& [name, options] : cases) {
    Options all = options;
    all.insert(
        {{"population_size", 12}, {"swapping_probability", 0.3}, {"mutation_probability", 1e-300}});
    const PluginInfo plugin{.name = "nsga2", .summary = "", .options = BreedingOptions()};
    const auto values = ReadOptions("sampler", plugin, all);
    ASSERT_TRUE(values.ok()) << values.status();
    // What differs little takes many to be seen.
    const bool subtle =
        options.contains("child_gene_probability") || std::string(name) == "sbx.eta";
    ExpectOptunasChildren(*BreedingOf(*values), name, subtle ? 8000 : 2000, subtle ? 0.026 : 0.047);
  }
}

TEST(Children, TakeOptionsOfTheirOwnCrossoverAlone) {
  const auto why_not = [](const Options& options) {
    return std::string(MakeSampler("nsga2", options).status().message());
  };
  EXPECT_EQ(why_not({{"alpha", 0.5}}),
            "sampler \"nsga2\": option \"alpha\" needs the crossover blx_alpha beside it, got 0.5");
  EXPECT_EQ(why_not({{"crossover", "spx"}, {"eta", 3}}),
            "sampler \"nsga2\": option \"eta\" needs the crossover sbx or vsbx beside it, got 3");
  EXPECT_EQ(why_not({{"mutation_eta", 3}}),
            "sampler \"nsga2\": option \"mutation_eta\" needs the mutation polynomial beside it, "
            "got 3");
  EXPECT_EQ(why_not({{"crossover", "vsbx"}, {"eta", 3}}), "");
}

TEST(Children, MutateInOneParameterOfAllUnlessToldOtherwise) {
  const History history = OptunasParents();
  const Population parents = ParentsOf(history.Input(), 12, ByCrowding);
  std::set<double> inherited;
  for (const Individual& parent : parents) {
    inherited.insert(NumberIn(*parent.trial->parameters, "x"));
  }
  const auto mutated = [&](double probability) {
    Breeding breeding = kBreeding;
    breeding.mutation_probability = probability;
    Random random(12);
    int count = 0;
    for (int i = 0; i < 2000; ++i) {
      const Parameters child = ChildOf(history.Input(), parents, breeding, random);
      count += inherited.contains(NumberIn(child, "x")) ? 0 : 1;
    }
    return count / 2000.0;
  };
  EXPECT_EQ(mutated(1e-300), 0);
  EXPECT_NEAR(mutated(0), 0.25, 0.04);
  EXPECT_NEAR(mutated(0.6), 0.6, 0.04);
  EXPECT_EQ(mutated(1), 1);
}

constexpr char kNestedSpace[] = R"({
  "n": {"_type": "choice", "_value": [
    {"_name": "A", "a": {"_type": "uniform", "_value": [0, 1]}},
    {"_name": "B", "b": {"_type": "uniform", "_value": [0, 1]}}]},
  "r": {"_type": "randint", "_value": [0, 3]}})";

// What an option brings in comes from a parent that has it, and is only drawn where none has.
TEST(Children, TakeConditionalParametersFromParentsThatHaveThem) {
  History history(SpaceOf(kNestedSpace), {Direction::kMinimize});
  history.End(Parameters{{"n", std::string("A")}, {"n/A/a", 0.25}, {"r", std::int64_t{0}}}, {1});
  history.End(Parameters{{"n", std::string("B")}, {"n/B/b", 0.75}, {"r", std::int64_t{2}}}, {1});
  const Population parents = ParentsOf(history.Input(), 2, ByCrowding);
  std::set<std::string> seen;
  Random random(13);
  for (int i = 0; i < 200; ++i) {
    const Parameters child = ChildOf(history.Input(), parents, kBreeding, random);
    ASSERT_TRUE(history.Input().space.Validate(child).ok()) << ToJson(child);
    seen.insert(ToJson(child));
  }
  EXPECT_EQ(seen.size(), 4U) << "each option with its parameter, and each r";
  EXPECT_TRUE(seen.contains(R"({"n":"A","n/A/a":0.25,"r":2})")) << *seen.begin();
  Breeding wild = kBreeding;
  wild.mutation_probability = 0.5;
  for (int i = 0; i < 200; ++i) {
    const Parameters child = ChildOf(history.Input(), parents, wild, random);
    ASSERT_TRUE(history.Input().space.Validate(child).ok()) << ToJson(child);
  }
}

// However wide a crossover is, children are of the space.
TEST(Children, StayInTheSpace) {
  constexpr char kSpace[] = R"({
    "r": {"_type": "randint", "_value": [0, 3]}, "u": {"_type": "uniform", "_value": [-2, 5]},
    "lu": {"_type": "loguniform", "_value": [1e-6, 1]},
    "q": {"_type": "quniform", "_value": [0, 1, 0.3]}, "n": {"_type": "normal", "_value": [1, 2]},
    "qln": {"_type": "qlognormal", "_value": [1, 1, 0.5]}})";
  History history(SpaceOf(kSpace), {Direction::kMaximize});
  Random random(14);
  for (int i = 0; i < 5; ++i) history.End(history.Input().space.Sample(random), {1.0 * i});
  const Population parents = ParentsOf(history.Input(), 5, ByCrowding);
  for (int crossover = 0; crossover < 6; ++crossover) {
    Breeding breeding = kBreeding;
    breeding.crossover = static_cast<Crossover>(crossover);
    if (crossover % 2 == 0) breeding.mutation = Mutation::kPolynomial;
    breeding.mutation_probability = 0.3;
    for (int i = 0; i < 100; ++i) {
      const Parameters child = ChildOf(history.Input(), parents, breeding, random);
      ASSERT_TRUE(history.Input().space.Validate(child).ok()) << ToJson(child);
    }
  }
}

// ---- the samplers -------------------------------------------------------------------------------

TEST(GeneticSamplers, NeedAsManyAsTheCrossoverTakes) {
  EXPECT_EQ(
      MakeSampler("nsga2", {{"population_size", 2}, {"crossover", "spx"}}).status().message(),
      "sampler \"nsga2\": option \"population_size\" needs at least 3 for a crossover of three "
      "parents, got 2");
  EXPECT_TRUE(MakeSampler("nsga3", {{"population_size", 2}}).ok());
}

TEST(GeneticSamplers, TakeObjectivesAndConstraints) {
  for (const char* name : {"nsga2", "nsga3"}) {
    const auto sampler = MakeSampler(name, {});
    ASSERT_TRUE(sampler.ok()) << sampler.status();
    EXPECT_TRUE((*sampler)->takes_objectives());
    EXPECT_TRUE((*sampler)->takes_constraints());
  }
}

// A used sampler and a fresh one, and any order of the input, give the same.
TEST(GeneticSamplers, SuggestByInputAndSeedAlone) {
  for (const char* name : {"nsga2", "nsga3"}) {
    const Options options = {{"population_size", 8}};
    const auto used = *MakeSampler(name, options);
    History history(SpaceOf(kOptunasSpace), {Direction::kMinimize, Direction::kMaximize});
    for (std::uint64_t i = 0; i < 60; ++i) {
      Random random(i), same(i), again(i);
      const auto suggestion = used->Suggest(history.Input(), random);
      ASSERT_EQ(suggestion, (*MakeSampler(name, options))->Suggest(history.Input(), same));
      EXPECT_EQ(random.Next(), same.Next());
      std::vector<Observation> shuffled = history.ended();
      std::reverse(shuffled.begin(), shuffled.end());
      SamplerInput other = history.Input();
      other.ended = shuffled;
      ASSERT_EQ(suggestion, used->Suggest(other, again));
      const double x = NumberIn(*suggestion, "x");
      history.End(*suggestion, {x, std::sin(9 * x) + NumberIn(*suggestion, "y")});
      if (i % 3 == 0) history.Constrain({NumberIn(*suggestion, "z") - 0.5});
    }
  }
}

// A child that nobody crossed or mutated is a trial over again: others are drawn instead.
TEST(GeneticSamplers, RepeatNoTrialWhileTheyFindOthers) {
  const auto sampler =
      *MakeSampler("nsga2", {{"population_size", 4}, {"mutation_probability", 0.1}});
  History history(SpaceOf(kUnitSpace), {Direction::kMinimize});
  std::set<double> seen;
  for (std::uint64_t i = 0; i < 40; ++i) {
    Random random(i);
    const Parameters suggestion = *sampler->Suggest(history.Input(), random);
    seen.insert(NumberIn(suggestion, "x"));
    history.End(suggestion, {1.0 * static_cast<double>(i)});
  }
  EXPECT_GT(seen.size(), 20U) << "but for 8 all are repetitions where the first child is taken";
}

// Who looks at more tells so, so that it is not done on the owner's thread.
TEST(GeneticSamplers, TellTheirWork) {
  History history(SpaceOf(kOptunasSpace),
                  {Direction::kMinimize, Direction::kMinimize, Direction::kMinimize});
  for (int i = 0; i < 100; ++i) history.End(0.5, {0, 0, 0});
  const auto work = [&](const char* name, const Options& options) {
    return (*MakeSampler(name, options))->Work(history.Input());
  };
  EXPECT_GT(work("nsga2", {}), 100);
  EXPECT_GT(work("nsga3", {}), work("nsga2", {}));
  EXPECT_GT(work("nsga3", {{"divisions", 20}}), 5 * work("nsga3", {}));
}

}  // namespace
}  // namespace espalier::samplers::nsga_test
