#include "tuner/core/fronts/fronts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "tests/core/samplers/recorded_losses.h"

namespace espalier::fronts_test {
namespace {

using espalier::testing::LossesIn;
using espalier::testing::RecordedNsga;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Rows = std::vector<std::size_t>;

Rows RowsOf(const std::vector<double>& numbers) { return {numbers.begin(), numbers.end()}; }

TEST(Fronts, AreOptunas) {
  for (const std::size_t objectives : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(absl::StrCat(objectives, " objectives"));
    const auto recorded = [objectives](const char* what) {
      return RecordedNsga()[absl::StrCat("fronts.", objectives, ".", what)];
    };
    const Losses losses = LossesIn(recorded("losses"), objectives);
    EXPECT_EQ(FrontNumbers(losses), RowsOf(recorded("numbers")));
    EXPECT_EQ(FrontNumbers(losses, recorded("violations")), RowsOf(recorded("constrained")));
    EXPECT_EQ(ParetoFront(losses), RowsOf(recorded("front")));
    EXPECT_EQ(CrowdingDistances(losses), recorded("crowding"));
  }
}

TEST(Hypervolume, IsOptunasAndSoAreTheRowsThatAddMost) {
  for (const std::size_t objectives : {2U, 3U, 4U, 5U}) {
    SCOPED_TRACE(absl::StrCat(objectives, " objectives"));
    const auto recorded = [objectives](const char* what) {
      return RecordedNsga()[absl::StrCat("volume.", objectives, ".", what)];
    };
    const Losses losses = LossesIn(recorded("losses"), objectives);
    const double volume = recorded("volume").front();
    EXPECT_NEAR(Hypervolume(losses, recorded("reference")), volume, 1e-12 * volume);
    Losses front(objectives);
    for (std::size_t i = 0; i + 5 < losses.size(); ++i) front.Add(losses[i]);
    EXPECT_EQ(HypervolumeSubset(front, recorded("subset").size(), recorded("reference")),
              RowsOf(recorded("subset")));
  }
}

// ---- beside the definitions ---------------------------------------------------------------------

Losses Drawn(std::size_t rows, std::size_t objectives, std::uint64_t values, Random& random) {
  Losses losses(objectives);
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<double> row;
    for (std::size_t k = 0; k < objectives; ++k) {
      row.push_back(static_cast<double>(random.Below(values)));
    }
    losses.Add(row);
  }
  return losses;
}

// Peels front after front off.
Rows PeeledFronts(const Losses& losses) {
  constexpr std::size_t kNone = ~std::size_t{0};
  Rows numbers(losses.size(), kNone);
  for (std::size_t number = 0; std::count(numbers.begin(), numbers.end(), kNone) > 0; ++number) {
    Rows front;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (numbers[i] != kNone) continue;
      bool dominated = false;
      for (std::size_t j = 0; j < losses.size(); ++j) {
        dominated = dominated || (numbers[j] == kNone && Dominates(losses[j], losses[i]));
      }
      if (!dominated) front.push_back(i);
    }
    for (const std::size_t i : front) numbers[i] = number;
  }
  return numbers;
}

TEST(Fronts, AreThoseThatArePeeledOff) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const std::size_t objectives = 1 + random.Below(5);
    const Losses losses = Drawn(random.Below(150), objectives, 2 + random.Below(30), random);
    ASSERT_EQ(FrontNumbers(losses), PeeledFronts(losses)) << "round " << round;
  }
}

// More rows than are looked at together, on one front, in a chain, and in between.
TEST(Fronts, OfManyRows) {
  constexpr std::size_t kRows = 9001;
  Losses chain(3), flat(3);
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto up = static_cast<double>(i * 7919 % kRows);
    chain.Add(std::vector{up, 2 * up, up});
    flat.Add(std::vector{up, -up, 0.0});
  }
  const Rows of_chain = FrontNumbers(chain);
  for (std::size_t i = 0; i < kRows; ++i) ASSERT_EQ(of_chain[i], i * 7919 % kRows);
  EXPECT_EQ(ParetoFront(flat).size(), kRows);
  Random random(2);
  const Losses cube = Drawn(kRows, 3, 1000, random);
  const Rows numbers = FrontNumbers(cube);
  const Losses plain = [&] {  // a column that says nothing
    Losses wider(4);
    for (std::size_t i = 0; i < kRows; ++i) {
      wider.Add(std::vector{0.0, cube[i][2], cube[i][0], cube[i][1]});
    }
    return wider;
  }();
  EXPECT_EQ(numbers, FrontNumbers(plain));
}

TEST(Fronts, OfNothingAndOfInfinities) {
  EXPECT_THAT(FrontNumbers(Losses(2)), IsEmpty());
  EXPECT_THAT(FrontNumbers(Losses(3), {}), IsEmpty());
  const Losses losses = LossesIn({kInfinity, 1, -kInfinity, 2, -kInfinity, kInfinity}, 2);
  EXPECT_THAT(FrontNumbers(losses), ElementsAre(0, 0, 1));
}

TEST(Fronts, ThoseWhoBreakMoreComeAfterThoseWhoBreakLess) {
  const Losses losses = LossesIn({3, 3, 1, 1, 2, 2, 0, 0, 0, 0}, 2);
  const std::vector<double> violations = {0, kInfinity, 0.5, 0, 0.5};
  EXPECT_THAT(FrontNumbers(losses, violations), ElementsAre(1, 3, 2, 0, 2));
}

TEST(Fronts, ViolationIsOfWhatIsBrokenOrNotKnown) {
  EXPECT_EQ(Violation(std::vector{-3.0, 0.0, 0.25, 0.5}), 0.75);
  EXPECT_EQ(Violation({}), 0);
  EXPECT_EQ(Violation(std::vector{-1.0, std::nan("")}), kInfinity);
}

TEST(CrowdingDistances, OfExtremesAreInfinite) {
  const Losses losses = LossesIn({0, 8, 1, 4, 3, 3, 4, 0}, 2);
  EXPECT_THAT(CrowdingDistances(losses),
              Pointwise(DoubleNear(1e-15), {kInfinity, 0.75 + 0.625, 0.75 + 0.5, kInfinity}));
}

// The volume by counting the cells of a grid of whole numbers.
double CountedVolume(const Losses& losses, std::size_t side) {
  std::size_t cells = 1;
  for (std::size_t k = 0; k < losses.objectives(); ++k) cells *= side;
  double volume = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    std::vector<double> corner;
    for (std::size_t rest = cell; corner.size() < losses.objectives(); rest /= side) {
      corner.push_back(static_cast<double>(rest % side));
    }
    bool inside = false;
    for (std::size_t i = 0; i < losses.size() && !inside; ++i) {
      inside = std::equal(losses[i].begin(), losses[i].end(), corner.begin(), std::less_equal<>());
    }
    volume += inside ? 1 : 0;
  }
  return volume;
}

TEST(Hypervolume, IsWhatOneCounts) {
  constexpr std::size_t kSide = 6;
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const std::size_t objectives = 1 + random.Below(4);
    const Losses losses = Drawn(random.Below(12), objectives, kSide + 1, random);
    ASSERT_EQ(Hypervolume(losses, std::vector<double>(objectives, kSide)),
              CountedVolume(losses, kSide))
        << "round " << round;
  }
}

TEST(Hypervolume, IsInfiniteWithoutBounds) {
  const Losses losses = LossesIn({0, 1, 1, 0}, 2);
  EXPECT_EQ(Hypervolume(losses, std::vector{kInfinity, 1.0}), kInfinity);
  EXPECT_EQ(Hypervolume(LossesIn({-kInfinity, 1, 1, 0}, 2), std::vector{2.0, 2.0}), kInfinity);
  EXPECT_EQ(Hypervolume(Losses(2), std::vector{1.0, 1.0}), 0);
}

// Each row that is chosen adds most to those before it, by the volumes themselves.
TEST(HypervolumeSubset, IsGreedy) {
  constexpr std::size_t kSide = 50;
  Random random(4);
  for (int round = 0; round < 20; ++round) {
    const std::size_t objectives = 2 + random.Below(3);
    const Losses losses = Drawn(15, objectives, kSide, random);
    const std::vector<double> reference(objectives, kSide);
    const Rows chosen = HypervolumeSubset(losses, 6, reference);
    Losses so_far(objectives);
    for (const std::size_t row : chosen) {
      const auto with = [&](std::size_t i) {
        Losses more = so_far;
        more.Add(losses[i]);
        return Hypervolume(more, reference);
      };
      double most = 0;
      for (std::size_t i = 0; i < losses.size(); ++i) most = std::max(most, with(i));
      ASSERT_EQ(with(row), most) << "round " << round;
      so_far.Add(losses[row]);
    }
  }
}

TEST(HypervolumeSubset, TakesRepetitionsLastAndFirstRowsWithoutBounds) {
  const Losses losses = LossesIn({2, 2, 1, 3, 2, 2, 3, 1}, 2);
  const std::vector<double> reference = {4, 4};
  EXPECT_THAT(HypervolumeSubset(losses, 4, reference), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(HypervolumeSubset(losses, 1, reference), ElementsAre(0));
  EXPECT_THAT(HypervolumeSubset(losses, 2, std::vector{4.0, kInfinity}), ElementsAre(1, 0));
  EXPECT_THAT(HypervolumeSubset(losses, 0, reference), IsEmpty());
}

}  // namespace
}  // namespace espalier::fronts_test
