#include "search_spaces/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace espalier {
namespace {

struct Known {
  double x;
  double result;
};

// To 60 digits by mpmath, then to the nearest double.
TEST(PortableMath, GivesTheNearestDouble) {
  const Known exponentials[] = {{0x1.999999999999ap-4, 0x1.1aec7b35a00d4p+0},
                                {-0x1.999999999999ap-4, 0x1.cf46d99d52b3ap-1},
                                {0x1.0000000000000p+0, 0x1.5bf0a8b145769p+1},
                                {-0x1.0000000000000p+0, 0x1.78b56362cef38p-2},
                                {0x1.0000000000000p-1, 0x1.a61298e1e069cp+0},
                                {0x1.4000000000000p+3, 0x1.5829dcf950560p+14},
                                {-0x1.4400000000000p+4, 0x1.b93de1e27ca3bp-30},
                                {0x1.9080000000000p+6, 0x1.5daaf24221d5ep+144},
                                {-0x1.2cb3333333333p+8, 0x1.225720438e36dp-434},
                                {0x1.5e26666666666p+9, 0x1.3f6d02b17eb6dp+1010},
                                {0x1.12e0be826d695p-30, 0x1.000000044b830p+0},
                                {0x1.d7f1483a9d150p+2, 0x1.8e8a2f67c2ae4p+10},
                                {0x1.d03b24160c6bcp+3, 0x1.e79454d5c8176p+20},
                                {0x1.1b62c54ada86ep+4, 0x1.7771e873c20d3p+25},
                                {0x1.a8c094ecfb376p+4, 0x1.3b025614d22c0p+38},
                                {0x1.cc9af28c7cd3cp+3, 0x1.b35960e44677dp+20}};
  for (const auto& [x, result] : exponentials) EXPECT_EQ(PortableExp(x), result) << x;
  const Known logarithms[] = {{0x1.999999999999ap-4, -0x1.26bb1bbb55515p+1},
                              {0x1.0000000000000p+1, 0x1.62e42fefa39efp-1},
                              {0x1.4000000000000p+3, 0x1.26bb1bbb55516p+1},
                              {0x1.4f8b588e368f1p-17, -0x1.7069e2aa2aa5bp+3},
                              {0x1.8000000000000p-1, -0x1.269621134db92p-2},
                              {0x1.000001ad7f29bp+0, 0x1.ad7f2847b6492p-24},
                              {0x1.7e43c8800759cp+996, 0x1.5963447f87fb5p+9},
                              {0x1.56e1fc2f8f359p-997, -0x1.5963447f87fb5p+9},
                              {0x1.d06f07b8bc236p-39, -0x1.a6fe5b26bf329p+4},
                              {0x1.e240c9fbe76c9p+16, 0x1.77281cad8a844p+3},
                              {0x1.2724dd1d339bap+2, 0x1.875109a1129f4p+0},
                              {0x1.29037733a544cp-3, -0x1.ee4b9d0042421p+0},
                              {0x1.29ff9d9e13a19p+1, 0x1.b0ab77678c7e6p-1},
                              {0x1.2ddfc841f64c9p+2, 0x1.8d16aacb297e8p+0},
                              {0x1.9f57fda425f45p+1, 0x1.2d54dca66559dp+0}};
  for (const auto& [x, result] : logarithms) EXPECT_EQ(PortableLog(x), result) << x;
}

TEST(PortableMath, AgreesWithTheLibraryToItsLastBit) {
  Random random(1);
  const auto next_to = [](double a, double b) { return std::abs(a - b) <= 3e-16 * std::abs(b); };
  for (int i = 0; i < 20000; ++i) {
    const double x = random.Uniform(-700, 700);
    EXPECT_TRUE(next_to(PortableExp(x), std::exp(x))) << x;
    const double y = std::exp(x);
    EXPECT_TRUE(next_to(PortableLog(y), std::log(y))) << y;
    const double near_one = 1 + random.Uniform(-1e-6, 1e-6);
    EXPECT_TRUE(next_to(PortableLog(near_one), std::log(near_one))) << near_one;
  }
}

TEST(PortableMath, QuickOnesAreNearTheLibrarys) {
  Random random(2);
  const auto near = [](double a, double b, double by) {
    return std::abs(a - b) <= by * std::abs(b);
  };
  for (int i = 0; i < 20000; ++i) {
    const double x = random.Uniform(-700, 700);
    EXPECT_TRUE(near(QuickExp(x), std::exp(x), 1e-15)) << x;
    const double y = i % 2 == 0 ? std::exp(x) : random.Uniform(0.3, 3);
    EXPECT_TRUE(near(QuickLog(y), std::log(y), 1e-15)) << y;
    const double z = random.Uniform(0, 6);
    EXPECT_TRUE(near(QuickErfc(z), std::erfc(z), 1e-14)) << z;
    EXPECT_TRUE(near(QuickErfc(4 * z), std::erfc(4 * z), 2e-13)) << 4 * z;
    EXPECT_NEAR(QuickLogErfc(z), std::log(std::erfc(z)), 2e-13) << z;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(QuickErfc(infinity), 0);
  EXPECT_EQ(QuickExp(-infinity), 0);
  EXPECT_EQ(QuickExp(infinity), infinity);
  EXPECT_TRUE(std::isnan(QuickExp(std::nan(""))));
  EXPECT_TRUE(std::isnan(QuickErfc(std::nan(""))));
}

// Bits, not values near them: a machine or compiler that gives others is not one that this is for.
TEST(PortableMath, QuickOnesGiveTheseBits) {
  EXPECT_EQ(QuickExp(-1.25), 0x1.25618372a585p-2);
  EXPECT_EQ(QuickLog(0.3), -0x1.34378fcbda72p+0);
  EXPECT_EQ(QuickErfc(1.7), 0x1.0993be8f17095p-6);
  EXPECT_NEAR(QuickLogErfc(100), -10005.177585122664, 1e-11);
}

TEST(PortableMath, HasTheEndsOfTheLibrary) {
  EXPECT_EQ(PortableExp(0), 1);
  EXPECT_EQ(PortableLog(1), 0);
  EXPECT_EQ(PortableExp(710), std::numeric_limits<double>::infinity());
  EXPECT_EQ(PortableExp(1e300), std::numeric_limits<double>::infinity());
  EXPECT_EQ(PortableExp(-746), 0);
  EXPECT_TRUE(std::isfinite(PortableExp(709.78)));
  EXPECT_NEAR(PortableLog(std::numeric_limits<double>::max()), 709.782712893384, 1e-12);
  EXPECT_NEAR(PortableLog(std::numeric_limits<double>::denorm_min()), -744.4400719213812, 1e-12);
}

}  // namespace
}  // namespace espalier
