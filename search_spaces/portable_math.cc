#include "search_spaces/portable_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"

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

// The sum of c[n] x^n, even and odd powers side by side: half as long a chain of operations.
template <std::size_t n>
double Series(const std::array<double, n>& c, double x) {
  static_assert(n % 2 == 0);
  const double square = x * x;
  double even = 0;
  double odd = 0;
  for (std::size_t i = n; i > 0; i -= 2) {
    odd = odd * square + c[i - 1];
    even = even * square + c[i - 2];
  }
  return even + x * odd;
}

// x = mantissa * 2^exponent, with the mantissa between the roots of 1/2 and 2.
struct Parts {
  double mantissa;
  int exponent;
};

Parts PartsOf(double x) {
  ESPALIER_CHECK(x > 0 && std::isfinite(x), "a logarithm needs a positive number");
  Parts parts{};
  parts.mantissa = std::frexp(x, &parts.exponent);
  if (parts.mantissa < 0.7071067811865476) {
    parts.mantissa *= 2;
    --parts.exponent;
  }
  return parts;
}

// 1/(2n + 1) for n = 0 to 11.
constexpr std::array<double, 12> kInverseOdds = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,
                                                 1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                                 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};

// 2 atanh((m - 1) / (m + 1)) by its series.
double LogOf(const Parts& parts) {
  const double s = (parts.mantissa - 1) / (parts.mantissa + 1);
  return parts.exponent * 0.6931471805599453 + 2 * s * Series(kInverseOdds, s * s);
}

// 1/n! for n = 0 to 13.
constexpr std::array<double, 14> kExponentialSeries = {1.0,
                                                       1.0,
                                                       1.0 / 2,
                                                       1.0 / 6,
                                                       1.0 / 24,
                                                       1.0 / 120,
                                                       1.0 / 720,
                                                       1.0 / 5040,
                                                       1.0 / 40320,
                                                       1.0 / 362880,
                                                       1.0 / 3628800,
                                                       1.0 / 39916800,
                                                       1.0 / 479001600,
                                                       1.0 / 6227020800};

double TimesPowerOf2(double x, int k) {
  constexpr int kBias = 1023;
  if (k <= -kBias || k > kBias) return std::ldexp(x, k);
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(k + kBias) << 52);
}

// (1 + 2z) e^(z^2) erfc(z) is smooth in t = (z - 3.75) / (z + 3.75): a Chebyshev series after
// Shepherd and Laframboise 1981, worked out to 40 digits and written in powers of t.
double ErfcSeries(double z) {
  constexpr std::array kSeries = {
      1.2375126308378275,      -0.14024059858554702,    0.0035854154854644293,
      0.08227673849015102,     -0.10880393014174886,    0.09230432116019834,
      -0.05869339858963677,    0.0283622774215156,      -0.009746579558029276,
      0.0017556258324217529,   0.0002937136655913448,   -0.00029015397928986765,
      5.164909889268241e-05,   2.2383912036550678e-05,  -1.1444146237700524e-05,
      -9.72849582211122e-07,   1.751637648849062e-06,   -5.826281078800777e-08,
      -2.5866850716155884e-07, 2.4289762925488707e-08,  3.8675334242222354e-08,
      -4.389284159986328e-09,  -5.1739902140113095e-09, 5.457157304704688e-10,
      4.2514714447963895e-10,  -3.75315827795962e-11};
  constexpr double kHalf = 3.75;
  const double t = (z - kHalf) / (z + kHalf);
  return Series(kSeries, t);
}

constexpr double kLargestExponent = 709.8;
constexpr double kSmallestExponent = -745.2;

}  // namespace

double PortableExp(double x) {
  if (x > kLargestExponent) return std::numeric_limits<double>::infinity();
  if (!(x >= kSmallestExponent)) return std::isnan(x) ? x : 0;
  const Exponential exponential = ExpOf(x);
  return std::ldexp(exponential.power.high, exponential.exponent);
}

double PortableLog(double x) {
  const Parts parts = PartsOf(x);
  // One step of Newton's: y + log(x e^-y), where the logarithm's argument is nearly one.
  const double y = LogOf(parts);
  const Exponential inverse = ExpOf(-y);
  Twofold near_one = inverse.power * Twofold{parts.mantissa, 0};
  const int shift = inverse.exponent + parts.exponent;
  near_one = {std::ldexp(near_one.high, shift), std::ldexp(near_one.low, shift)};
  const Twofold less_one = near_one + Twofold{-1, 0};
  const Twofold step = less_one + Twofold{-0.5 * less_one.high * less_one.high, 0};
  return (Twofold{y, 0} + step).high;
}

double QuickExp(double x) {
  if (x > kLargestExponent) return std::numeric_limits<double>::infinity();
  if (!(x >= kSmallestExponent)) return std::isnan(x) ? x : 0;
  const double k = std::nearbyint(x * 1.4426950408889634);
  const double r = (x - k * kLn2High) - k * (kLn2Middle + kLn2Low);
  return TimesPowerOf2(Series(kExponentialSeries, r), static_cast<int>(k));
}

double QuickLog(double x) { return LogOf(PartsOf(x)); }

double QuickErfc(double z) {
  constexpr double kLargest = 27.3;
  if (z > kLargest) return 0;
  return QuickExp(-z * z) * ErfcSeries(z) / (1 + 2 * z);
}

double QuickErfcx(double z) { return ErfcSeries(z) / (1 + 2 * z); }

double QuickLogErfc(double z) { return QuickLog(ErfcSeries(z) / (1 + 2 * z)) - z * z; }

}  // namespace espalier
