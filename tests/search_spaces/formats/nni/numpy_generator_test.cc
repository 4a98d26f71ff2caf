#include "search_spaces/formats/nni/numpy_generator.h"

#include <gtest/gtest.h>

#include "search_spaces/formats/nni/sampling.h"

namespace espalier {
namespace {

struct Expected {
  std::uint64_t seed;
  std::uint64_t integers[5];  // of 10, 1000, 2^40, 3 and 2^32
  double uniform;             // after the third
  double normal;              // at the end
};

// By numpy 2.4.6.
TEST(NumpyGenerator, DrawsAsNumpyDoes) {
  const Expected all[] = {
      {0, {8, 636, 296633628802, 0, 70985654}, -0x1.c1108e08272c9p-1, -0.535669373161111},
      {42, {0, 773, 482551947687, 0, 2995172878}, 0x1.936738474c8e4p+0, -1.9510351886538364},
      {1099511627783,
       {2, 829, 280710990236, 1, 2896974965},
       -0x1.13c707a5e5df5p-1,
       1.2516501706349121}};
  for (const Expected& expected : all) {
    NumpyGenerator generator(expected.seed);
    EXPECT_EQ(generator.Integers(10), expected.integers[0]);
    EXPECT_EQ(generator.Integers(1000), expected.integers[1]);
    EXPECT_EQ(generator.Integers(std::uint64_t{1} << 40), expected.integers[2]);
    EXPECT_EQ(generator.Uniform(-1, 2), expected.uniform);
    EXPECT_EQ(generator.Integers(3), expected.integers[3]);
    EXPECT_EQ(generator.Integers(std::uint64_t{1} << 32), expected.integers[4]);
    EXPECT_NEAR(generator.Normal(0, 1), expected.normal, 1e-12);
  }
}

TEST(NumpyGenerator, DrawsNormalsOfTheTailAsNumpyDoes) {
  NumpyGenerator generator(3);
  for (int i = 0; i < 1966; ++i) generator.Normal(0, 1);
  EXPECT_NEAR(generator.Normal(0, 1), 3.8864552710410796, 1e-12);
  for (int i = 1967; i < 99999; ++i) generator.Normal(0, 1);
  EXPECT_NEAR(generator.Normal(0, 1), -0.9907791535071947, 1e-12);
}

TEST(SampleAsNni, FailsWhereNniDoes) {
  const auto space = SearchSpace::Make({{"i", RandInt{-9223372036854775807, 9223372036854775807}}});
  NumpyGenerator generator(1);
  const auto drawn = SampleAsNni(*space, generator);
  EXPECT_EQ(drawn.status().code(), absl::StatusCode::kOutOfRange);
  const auto large = SearchSpace::Make({{"x", LogNormal{800, 1}}});
  EXPECT_FALSE(SampleAsNni(*large, generator).ok());
}

}  // namespace
}  // namespace espalier
