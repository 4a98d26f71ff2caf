#include "search_spaces/gaussian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tuner/base/check.h"

namespace espalier {
namespace {

template <std::size_t n>
double Polynomial(const std::array<double, n>& coefficients, double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

// P. J. Acklam's approximation, relative error below 1.15e-9.
double RoughQuantile(double p) {
  constexpr std::array a = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                            1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array b = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                            6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr std::array c = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                            -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array d = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                            3.754408661907416e+00, 1.0};
  constexpr double kTail = 0.02425;
  if (p < kTail || p > 1 - kTail) {
    const double r = std::sqrt(-2 * std::log(std::min(p, 1 - p)));
    const double x = Polynomial(c, r) / Polynomial(d, r);
    return p < kTail ? x : -x;
  }
  const double r = p - 0.5;
  return r * Polynomial(a, r * r) / Polynomial(b, r * r);
}

}  // namespace

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double NormalQuantile(double probability) {
  ESPALIER_CHECK(probability > 0 && probability < 1, "a quantile needs a probability in (0, 1)");
  const double x = RoughQuantile(probability);
  const double error = NormalCdf(x) - probability;
  const double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(0.5 * x * x);
  return x - step / (1 + 0.5 * x * step);
}

double NormalMass(double low, double high) {
  // Above zero both probabilities are near one: the mirrored interval keeps the small difference.
  if (low > 0) return NormalCdf(-low) - NormalCdf(-high);
  return NormalCdf(high) - NormalCdf(low);
}

}  // namespace espalier
