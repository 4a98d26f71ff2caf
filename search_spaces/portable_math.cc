#include "search_spaces/portable_math.h"

#include <array>
#include <cmath>
#include <limits>

#include "tuner/base/check.h"

namespace espalier {
namespace {

// An unevaluated sum, high being the nearest double to it (Dekker 1971). The operations below are
// exact but for the last few of its 106 bits; they need each step rounded to double, so this folder
// is compiled without contraction to fused operations.
struct Twofold {
  double high;
  double low;
};

// Requires |a| >= |b|, or a == 0.
Twofold QuickSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Twofold Sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Twofold Product(double a, double b) {
  constexpr double kSplit = 134217729;  // 2^27 + 1
  const double big_a = kSplit * a;
  const double high_a = big_a - (big_a - a);
  const double low_a = a - high_a;
  const double big_b = kSplit * b;
  const double high_b = big_b - (big_b - b);
  const double low_b = b - high_b;
  const double product = a * b;
  return {product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b};
}

Twofold operator+(Twofold a, Twofold b) {
  const Twofold high = Sum(a.high, b.high);
  const Twofold low = Sum(a.low, b.low);
  const Twofold sum = QuickSum(high.high, high.low + low.high);
  return QuickSum(sum.high, sum.low + low.low);
}

Twofold operator*(Twofold a, Twofold b) {
  const Twofold product = Product(a.high, b.high);
  return QuickSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

// ln 2 in three parts, the first short enough for exact multiples.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Middle = 0x1.a39ef35793c76p-33;
constexpr double kLn2Low = 0x1.cc01f97b57a08p-87;

// 1/n! for n = 12 to 1.
constexpr std::array<Twofold, 12> kInverseFactorials = {
    {{0x1.1eed8eff8d898p-29, -0x1.2aec959e14c06p-83},
     {0x1.ae64567f544e4p-26, -0x1.c062e06d1f209p-80},
     {0x1.27e4fb7789f5cp-22, 0x1.cbbc05b4fa99ap-76},
     {0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73},
     {0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76},
     {0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
     {0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
     {0x1.1111111111111p-7, 0x1.1111111111111p-63},
     {0x1.5555555555555p-5, 0x1.5555555555555p-59},
     {0x1.5555555555555p-3, 0x1.5555555555555p-57},
     {0.5, 0},
     {1, 0}}};

// e^x = power * 2^exponent.
struct Exponential {
  Twofold power;
  int exponent;
};

Exponential ExpOf(double x) {
  const double k = std::nearbyint(x * 1.4426950408889634);
  // What is left, |r| < 0.35, and of that a 64th, for which twelve terms of the series suffice.
  Twofold r = Sum(x - k * kLn2High, 0);
  r = r + Twofold{-k * kLn2Middle, -Product(k, kLn2Middle).low};
  r = r + Twofold{-k * kLn2Low, 0};
  constexpr int kHalvings = 6;
  r = {std::ldexp(r.high, -kHalvings), std::ldexp(r.low, -kHalvings)};
  Twofold less_one = kInverseFactorials[0];
  for (std::size_t i = 1; i < kInverseFactorials.size(); ++i) {
    less_one = less_one * r + kInverseFactorials[i];
  }
  less_one = less_one * r;
  // (1 + e)^2 = 1 + (2e + e^2), which keeps the bits that 1 + e would lose.
  for (int i = 0; i < kHalvings; ++i) {
    less_one = Twofold{2 * less_one.high, 2 * less_one.low} + less_one * less_one;
  }
  return {Twofold{1, 0} + less_one, static_cast<int>(k)};
}

// To a few units in the last place: 2 atanh((m - 1) / (m + 1)) by its series.
double RoughLog(double mantissa, int exponent) {
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * 0.6931471805599453 + 2 * s * sum;
}

}  // namespace

double PortableExp(double x) {
  constexpr double kMost = 709.8;
  constexpr double kLeast = -745.2;
  if (x > kMost) return std::numeric_limits<double>::infinity();
  if (x < kLeast) return 0;
  const Exponential exponential = ExpOf(x);
  return std::ldexp(exponential.power.high, exponential.exponent);
}

double PortableLog(double x) {
  ESPALIER_CHECK(x > 0 && std::isfinite(x), "a logarithm needs a positive number");
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.7071067811865476) {
    mantissa *= 2;
    --exponent;
  }
  // One step of Newton's: y + log(x e^-y), where the logarithm's argument is nearly one.
  const double y = RoughLog(mantissa, exponent);
  const Exponential inverse = ExpOf(-y);
  Twofold near_one = inverse.power * Twofold{mantissa, 0};
  const int shift = inverse.exponent + exponent;
  near_one = {std::ldexp(near_one.high, shift), std::ldexp(near_one.low, shift)};
  const Twofold less_one = near_one + Twofold{-1, 0};
  const Twofold step = less_one + Twofold{-0.5 * less_one.high * less_one.high, 0};
  return (Twofold{y, 0} + step).high;
}

}  // namespace espalier
