#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "base/random.h"
#include "tests/core/samplers/optuna/recorded.h"
#include "tuner/core/samplers/low_discrepancy.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier {
namespace {

using Numbers = std::vector<double>;
using Points = std::vector<Numbers>;

const testing::Recorded& SciPys() {
  static const testing::Recorded recorded(ESPALIER_RECORDED_QMC);
  return recorded;
}

using Coordinate = double (*)(std::uint64_t n, std::size_t dimension);

// n-th points of all dimensions, and the first sixteen of the first ten, bit by bit.
void ExpectRecorded(Coordinate coordinate, const std::string& name,
                    const std::vector<std::uint64_t>& far) {
  const Numbers& first = SciPys()[name + ".first"];
  ASSERT_EQ(first.size(), 160U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(coordinate(i / 10, i % 10), first[i]) << name << " " << i;
  }
  for (const std::uint64_t n : far) {
    const Numbers& point = SciPys()[name + "." + std::to_string(n)];
    ASSERT_EQ(point.size(), samplers::kSobolDimensions);
    for (std::size_t i = 0; i < point.size(); ++i) EXPECT_EQ(coordinate(n, i), point[i]) << i;
  }
}

TEST(LowDiscrepancy, IsSciPys) {
  ExpectRecorded(samplers::SobolCoordinate, "sobol", {1365, 87381});
  ExpectRecorded(samplers::HaltonCoordinate, "halton", {12345});
}

using Scrambled = double (*)(std::uint64_t n, std::size_t dimension, std::uint64_t seed);
constexpr Scrambled kScrambled[] = {samplers::ScrambledSobolCoordinate,
                                    samplers::ScrambledHaltonCoordinate};

// The largest distance between a uniform distribution and that of numbers.
double DistanceFromUniform(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  double largest = 0;
  const auto count = static_cast<double>(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<double>(i);
    largest = std::max({largest, numbers[i] - at / count, (at + 1) / count - numbers[i]});
  }
  return largest;
}

TEST(LowDiscrepancy, EachScrambledPointIsUniformOverSeeds) {
  for (const Scrambled coordinate : kScrambled) {
    for (const std::uint64_t n : {0U, 1U, 77U}) {
      for (const std::size_t dimension : {0U, 3U, 90U}) {
        Numbers over_seeds;
        for (std::uint64_t seed = 0; seed < 2000; ++seed) {
          over_seeds.push_back(coordinate(n, dimension, MixSeed(9, seed)));
        }
        EXPECT_LT(DistanceFromUniform(over_seeds), 0.045) << n << " " << dimension;
        EXPECT_GE(*std::min_element(over_seeds.begin(), over_seeds.end()), 0);
        EXPECT_LT(*std::max_element(over_seeds.begin(), over_seeds.end()), 1);
      }
    }
  }
}

TEST(LowDiscrepancy, ScrambledPointsStayApart) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    // Of Sobol's, sixteen in a row are one in each sixteenth of a line, and of each square of four
    // by four in the first two dimensions.
    for (std::size_t dimension = 0; dimension < 256; dimension += 17) {
      std::set<int> taken;
      for (std::uint64_t n = 32; n < 48; ++n) {
        taken.insert(static_cast<int>(16 * samplers::ScrambledSobolCoordinate(n, dimension, seed)));
      }
      EXPECT_EQ(taken.size(), 16U) << dimension;
    }
    std::set<std::pair<int, int>> squares;
    std::set<int> of_seven;
    for (std::uint64_t n = 16; n < 32; ++n) {
      squares.emplace(static_cast<int>(4 * samplers::ScrambledSobolCoordinate(n, 0, seed)),
                      static_cast<int>(4 * samplers::ScrambledSobolCoordinate(n, 1, seed)));
    }
    EXPECT_EQ(squares.size(), 16U);
    // Of Halton's, as many as its prime: 7 is that of the fourth dimension.
    for (std::uint64_t n = 70; n < 77; ++n) {
      of_seven.insert(static_cast<int>(7 * samplers::ScrambledHaltonCoordinate(n, 3, seed)));
    }
    EXPECT_EQ(of_seven.size(), 7U);
  }
}

// The square of the centred L2 discrepancy: Hickernell 1998, "A generalized discrepancy and
// quadrature error bound".
double Discrepancy(const Points& points) {
  const auto n = static_cast<double>(points.size());
  const auto dimensions = points.front().size();
  double sum = std::pow(13.0 / 12, static_cast<double>(dimensions));
  for (const Numbers& x : points) {
    double product = 1;
    for (const double at : x) {
      const double z = std::abs(at - 0.5);
      product *= 1 + 0.5 * z - 0.5 * z * z;
    }
    sum -= 2 / n * product;
    for (const Numbers& y : points) {
      double pair = 1;
      for (std::size_t i = 0; i < dimensions; ++i) {
        pair *= 1 + 0.5 * std::abs(x[i] - 0.5) + 0.5 * std::abs(y[i] - 0.5) -
                0.5 * std::abs(x[i] - y[i]);
      }
      sum += pair / (n * n);
    }
  }
  return sum;
}

TEST(LowDiscrepancy, FillsTheCubeMoreEvenlyThanRandomPoints) {
  constexpr std::size_t kDimensions = 6;
  constexpr std::uint64_t kPoints = 64;
  for (const Scrambled coordinate : kScrambled) {
    double of_sequence = 0, of_random = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Points points, drawn;
      Random random(seed);
      for (std::uint64_t n = 0; n < kPoints; ++n) {
        Numbers& point = points.emplace_back();
        Numbers& draw = drawn.emplace_back();
        for (std::size_t i = 0; i < kDimensions; ++i) {
          point.push_back(coordinate(n, i, seed));
          draw.push_back(random.Uniform());
        }
      }
      of_sequence += Discrepancy(points);
      of_random += Discrepancy(drawn);
    }
    EXPECT_LT(of_sequence, 0.5 * of_random);
  }
}

const char* const kSpace = R"({
  "x": {"_type": "uniform", "_value": [-5, 10]}, "lr": {"_type": "loguniform", "_value": [1e-5, 1]},
  "depth": {"_type": "randint", "_value": [1, 13]},
  "act": {"_type": "choice", "_value": [0, 1, 2]}})";

Parameters QmcSuggested(const SearchSpace& space, const Options& options, std::int64_t number,
                        std::uint64_t study_seed) {
  const auto sampler = MakeSampler("qmc", options);
  Random random(static_cast<std::uint64_t>(number));
  return *(*sampler)->Suggest({.space = space,
                               .direction = Direction::kMinimize,
                               .ended = {},
                               .running = {},
                               .trial_number = number,
                               .study_seed = study_seed},
                              random);
}

TEST(QmcSampler, SuggestsWhatOptunasDoes) {
  const SearchSpace space = *SearchSpace::FromJson(kSpace);
  for (const std::string type : {"sobol", "halton"}) {
    const Numbers& trials = SciPys()[type + ".trials"];
    ASSERT_EQ(trials.size(), 48U);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const Parameters ours = QmcSuggested(space, {{"type", type}, {"scramble", false}},
                                           static_cast<std::int64_t>(i / 4), i);
      EXPECT_NEAR(*NumberOf(ours[i % 4].value), trials[i], 1e-9 * std::abs(trials[i]) + 1e-9) << i;
    }
  }
}

TEST(QmcSampler, ScramblesByTheStudysSeed) {
  const SearchSpace space = *SearchSpace::FromJson(kSpace);
  for (const std::string type : {"sobol", "halton"}) {
    EXPECT_EQ(QmcSuggested(space, {{"type", type}}, 5, 1),
              QmcSuggested(space, {{"type", type}}, 5, 1));
    EXPECT_NE(QmcSuggested(space, {{"type", type}}, 5, 1),
              QmcSuggested(space, {{"type", type}}, 5, 2));
  }
  EXPECT_NE(QmcSuggested(space, {{"type", "sobol"}}, 5, 1),
            QmcSuggested(space, {{"type", "halton"}}, 5, 1));
}

TEST(QmcSampler, UsesOptionsOfAChoiceEquallyOften) {
  const SearchSpace space = *SearchSpace::FromJson(
      R"({"c": {"_type": "choice", "_value": [
            {"_name": "a", "p": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "b"}]},
          "x": {"_type": "uniform", "_value": [0, 1]}})");
  int with = 0;
  std::set<int> eighths;
  for (std::int64_t n = 0; n < 16; ++n) {
    const Parameters parameters = QmcSuggested(space, {}, n, 7);
    EXPECT_TRUE(space.Validate(parameters).ok());
    if (Find(parameters, "c/a/p") != nullptr) ++with;
    eighths.insert(static_cast<int>(16 * *NumberOf(*Find(parameters, "x"))));
  }
  EXPECT_EQ(with, 8);
  EXPECT_EQ(eighths.size(), 16U);  // x has a coordinate of its own, whatever c is
}

TEST(QmcSampler, SuggestsTheseValuesEverywhere) {
  const SearchSpace space = *SearchSpace::FromJson(kSpace);
  EXPECT_EQ(ToJson(QmcSuggested(space, {}, 13, 42)),
            R"({"x":-2.6074001793261834,"lr":0.001882769415395932,"depth":11,"act":1})");
  EXPECT_EQ(ToJson(QmcSuggested(space, {{"type", "halton"}}, 13, 42)),
            R"({"x":1.0999276665273792,"lr":0.014067792077442371,"depth":5,"act":0})");
}

TEST(QmcSampler, BeginsWithinAnUnboundedDistribution) {
  const SearchSpace space =
      *SearchSpace::FromJson(R"({"z": {"_type": "normal", "_value": [0, 1]}})");
  const double z = *NumberOf(QmcSuggested(space, {{"scramble", false}}, 0, 1).front().value);
  EXPECT_GT(z, -4);
  EXPECT_LT(z, -2);
}

}  // namespace
}  // namespace espalier
