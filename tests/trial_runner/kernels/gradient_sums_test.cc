// The kernels' arithmetic and how it is divided into launches, blocks and threads, on the host.

#include "trial_runner/kernels/gradient_sums.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/trial_runner/kernels/host_launch.h"
#include "trial_runner/kernels/gradient_launches.h"

namespace espalier {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Gradients of pieces of such sizes, one after the other, which begin at an odd place.
struct Gradients {
  explicit Gradients(const std::vector<std::int64_t>& sizes, std::int64_t number_of_groups = 2)
      : groups(number_of_groups) {
    Random random(7);
    std::int64_t begin = 1;
    for (const std::int64_t size : sizes) begin += size;
    for (auto* values : {&now, &before, &moments, &folded}) {
      values->resize(static_cast<std::size_t>(begin));
      for (float& v : *values) v = static_cast<float>(random.Normal());
    }
    for (float& v : moments) v *= v;
    begin = 1;
    for (const std::int64_t size : sizes) {
      GradientPiece piece{.gradient = now.data() + begin, .count = size};
      piece.group = static_cast<std::int32_t>(std::ssize(pieces) % groups);
      // One in three is not scaled, and the others have scales of their own.
      if (pieces.size() % 3 != 1) {
        piece.scale = {moments.data() + begin, 1 + 0.25F * static_cast<float>(pieces.size() % 5),
                       1e-3F};
      }
      pieces.push_back(piece);
      begin += size;
    }
  }

  void Compare() {
    for (GradientPiece& piece : pieces)
      piece.previous = before.data() + (piece.gradient - now.data());
  }
  void Fold() {
    for (GradientPiece& piece : pieces)
      piece.folded = folded.data() + (piece.gradient - now.data());
  }

  // All sums, in double.
  std::vector<double> Expected() const {
    std::vector<double> sums(static_cast<std::size_t>(3 * groups + 1));
    for (const GradientPiece& piece : pieces) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        const auto plain = static_cast<double>(piece.gradient[i]);
        double scale = 1;
        if (const float* v = piece.scale.second_moment) {
          scale =
              1 / (std::sqrt(static_cast<double>(v[i])) * static_cast<double>(piece.scale.factor) +
                   static_cast<double>(piece.scale.epsilon));
        }
        const double previous =
            piece.previous != nullptr ? static_cast<double>(piece.previous[i]) * scale : 0;
        const auto g = static_cast<std::size_t>(piece.group);
        const auto all = static_cast<std::size_t>(groups);
        sums[g] += plain * scale * plain * scale;
        sums[all + g] += previous * previous;
        sums[2 * all + g] += plain * scale * previous;
        sums[3 * all] += plain * plain;
      }
    }
    return sums;
  }

  // Those of the kernels.
  std::vector<float> Sums(GradientSums settings = {}) const {
    std::vector<float> sums(static_cast<std::size_t>(3 * groups + 1), 100.0F);
    std::vector<GradientPartial> partials(static_cast<std::size_t>(GradientBlocks(pieces)));
    for (GradientPartial& p : partials) p = {{1e30, 1e30, 1e30, 1e30}, 0};  // is overwritten
    settings.pieces = pieces;
    settings.groups = groups;
    if (settings.wanted == 0) settings.wanted = 3 * groups + 1;
    settings.sums = sums.data();
    settings.partials = partials.data();
    EXPECT_TRUE(LaunchOnHost(settings, -1).ok());
    return sums;
  }

  std::int64_t groups;
  std::vector<float> now, before, moments, folded;
  std::vector<GradientPiece> pieces;
};

void ExpectSums(const std::vector<double>& expected, const std::vector<float>& sums,
                double tolerance = 1e-6) {
  ASSERT_EQ(expected.size(), sums.size());
  // |a . b| is at most |a|^2 + |b|^2, by which its error is bounded, and not by itself.
  double largest = 0;
  for (const double sum : expected) largest = std::max(largest, std::abs(sum));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(expected[i], static_cast<double>(sums[i]), tolerance * largest + 1e-30)
        << "sum " << i;
  }
}

std::vector<std::vector<std::int64_t>> ManySizes() {
  std::vector<std::int64_t> many;  // more than a launch takes, and some of them empty
  for (std::int64_t i = 0; i < 3 * kMostGradientPieces + 5; ++i) many.push_back(i * 37 % 301);
  return {{},
          {0},
          {1},
          {3, 255, 256, 257},
          {kGradientBlock - 1, kGradientBlock, kGradientBlock + 1, 5 * kGradientBlock + 77},
          std::vector<std::int64_t>(static_cast<std::size_t>(kMostGradientPieces), 5),
          many};
}

TEST(GradientSums, AreThoseOfEachElementWhateverThePieces) {
  for (const auto& sizes : ManySizes()) {
    for (const std::int64_t groups : {1, 2, 7}) {
      SCOPED_TRACE(testing::Message() << sizes.size() << " pieces, " << groups << " groups");
      Gradients gradients(sizes, groups);
      ExpectSums(gradients.Expected(), gradients.Sums());
      gradients.Compare();
      ExpectSums(gradients.Expected(), gradients.Sums());
    }
  }
}

TEST(GradientSums, AreThoseOfTheHostsLoops) {
  Gradients gradients({12345}, 1);
  gradients.Compare();
  const GradientPiece& piece = gradients.pieces[0];
  const PairNorms pair = NormsWithPrevious(piece.gradient, piece.previous,
                                           static_cast<std::size_t>(piece.count), piece.scale);
  const double plain = SquaredNorm(piece.gradient, static_cast<std::size_t>(piece.count), {});
  // Theirs are float over longer stretches.
  ExpectSums({pair.sqr, pair.previous_sqr, pair.product, plain}, gradients.Sums(), 1e-5);
}

TEST(GradientSums, AreTheSameToTheLastBitEachTime) {
  Gradients gradients({50000, 7, 70000});
  gradients.Compare();
  const std::vector<float> once = gradients.Sums();
  const std::vector<float> again = gradients.Sums();
  EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)), 0);
}

// A step is left out by this.
TEST(GradientSums, OfAGroupWithoutFiniteGradientAreNotFinite) {
  for (const float broken : {kInfinity, -kInfinity, kNan}) {
    for (const bool compared : {false, true}) {
      for (const std::size_t piece : {std::size_t{0}, std::size_t{1}}) {  // scaled, and not
        Gradients gradients({20000, 20000});
        if (compared) gradients.Compare();
        const std::ptrdiff_t at = gradients.pieces[piece].gradient - gradients.now.data() + 19999;
        gradients.now[static_cast<std::size_t>(at)] = broken;
        const std::vector<float> sums = gradients.Sums();
        EXPECT_FALSE(std::isfinite(sums[piece]));
        EXPECT_TRUE(std::isfinite(sums[1 - piece])) << "each group for itself";
        EXPECT_EQ(std::isfinite(sums[4 + piece]), !compared) << "the product";
        EXPECT_TRUE(std::isfinite(sums[2 + piece])) << "of the step before";
        EXPECT_FALSE(std::isfinite(sums[6]));
      }
    }
  }
  Gradients large({8}, 1);
  for (float& g : large.now) g = 3e38F;
  large.pieces[0].scale = {};
  EXPECT_EQ(large.Sums()[0], kInfinity) << "no float";
}

TEST(GradientSums, OfNothingAreZero) {
  const Gradients none({});
  for (const float sum : none.Sums()) EXPECT_EQ(sum, 0);
}

TEST(GradientSums, ThatAreNotWantedAreNotWritten) {
  const Gradients gradients({100, 100});
  const std::vector<float> sums = gradients.Sums({.wanted = 2});
  EXPECT_GT(sums[1], 0);
  EXPECT_NE(sums[1], 100);
  EXPECT_EQ(sums[2], 100);
}

TEST(GradientSums, AreAddedByTheirFactor) {
  const Gradients gradients({100, 30000});
  const std::vector<double> expected = gradients.Expected();
  const std::vector<float> sums = gradients.Sums({.wanted = 2, .factor = 0.25F, .add_sums = true});
  for (const std::size_t g : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_NEAR(static_cast<double>(sums[g]), 100 + 0.25 * expected[g], 1e-5 * expected[g]);
  }
}

TEST(GradientSums, FoldByWeightWhatTheyMeasure) {
  for (const auto& sizes : ManySizes()) {
    for (const bool add : {false, true}) {
      Gradients gradients(sizes);
      const std::vector<float> had = gradients.folded;
      gradients.Fold();
      ExpectSums(gradients.Expected(), gradients.Sums({.weight = 0.5F, .add = add}));
      EXPECT_EQ(gradients.folded[0], had[0]) << "is of no piece";
      for (std::size_t i = 1; i < had.size(); ++i) {
        const float expected = 0.5F * gradients.now[i] + (add ? had[i] : 0.0F);
        ASSERT_NEAR(gradients.folded[i], expected, 1e-6F * (1 + std::abs(expected))) << i;
      }
    }
  }
}

TEST(GradientSums, FoldWithoutMeasuring) {
  Gradients gradients({kGradientBlock + 3, 9});
  gradients.Fold();
  GradientSums sums{.pieces = gradients.pieces};
  ASSERT_TRUE(LaunchOnHost(sums, -1).ok());  // no memory for sums at all
  for (std::size_t i = 1; i < gradients.now.size(); ++i) {
    ASSERT_EQ(gradients.folded[i], gradients.now[i]) << i;
  }
}

// Pieces that nobody has the memory for: only their launches are looked at.
TEST(GradientSums, CountElementsBeyondTheReachOf32Bits) {
  constexpr std::int64_t kLarge = (std::int64_t{3} << 31) + 5;
  std::vector<GradientPartial> partials(1);  // is not written to
  GradientSums sums{.pieces = {{.count = kLarge, .group = 0},
                               {.count = 10, .group = 1},
                               {.count = kLarge, .group = 2}},
                    .groups = 3,
                    .wanted = 10,
                    .partials = partials.data()};
  const std::int64_t blocks_of_large = (kLarge + kGradientBlock - 1) / kGradientBlock;
  EXPECT_EQ(GradientBlocks(sums.pieces), 2 * blocks_of_large + 1);
  int launches = 0;
  ForEachGradientLaunch(sums, [&](const GradientLaunch& launch) {
    ++launches;
    EXPECT_EQ(launch.blocks, 2 * blocks_of_large + 1);
    EXPECT_EQ(launch.partials, partials.data());
    for (const std::int32_t piece : {0, 2}) {
      const std::int32_t first = launch.first_block[piece];
      const auto last = static_cast<std::int32_t>(first + blocks_of_large - 1);
      EXPECT_EQ(PieceOfBlock(launch, first), piece);
      EXPECT_EQ(PieceOfBlock(launch, last), piece);
      const GradientStretch end = StretchOfBlock(launch.pieces[piece], last - first);
      EXPECT_EQ(end.begin + end.count, kLarge);
      EXPECT_EQ(end.begin, kLarge - 5);
    }
    EXPECT_EQ(PieceOfBlock(launch, launch.first_block[1]), 1);
    return true;
  });
  EXPECT_EQ(launches, 1);
}

// Each block once, in an order of partials without gaps.
TEST(GradientSums, HaveLaunchesOfFewPieces) {
  Gradients gradients(std::vector<std::int64_t>(150, kGradientBlock + 1));
  std::vector<GradientPartial> partials(300);
  GradientSums sums{.pieces = gradients.pieces, .wanted = 1, .partials = partials.data()};
  std::vector<std::int32_t> counts;
  const GradientPartial* next = partials.data();
  ForEachGradientLaunch(sums, [&](const GradientLaunch& launch) {
    counts.push_back(launch.count);
    EXPECT_EQ(launch.partials, next);
    EXPECT_EQ(launch.blocks, 2 * launch.count);
    next += launch.blocks;
    return true;
  });
  EXPECT_EQ(counts, (std::vector<std::int32_t>{64, 64, 22}));
  int begun = 0;
  EXPECT_FALSE(ForEachGradientLaunch(sums, [&](const GradientLaunch&) { return ++begun < 2; }));
  EXPECT_EQ(begun, 2) << "none after one that failed";
}

}  // namespace
}  // namespace espalier
