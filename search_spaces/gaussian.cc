#include "search_spaces/gaussian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "search_spaces/portable_math.h"

namespace espalier {
namespace {

template <std::size_t n>
double Polynomial(const std::array<double, n>& coefficients, double x) {
  double sum = 0;
  for (const double c : coefficients) sum = sum * x + c;
  return sum;
}

// p(x) / q(x), the highest power first.
struct Ratio {
  std::array<double, 8> above;
  std::array<double, 8> below;

  double At(double x) const { return Polynomial(above, x) / Polynomial(below, x); }
};

// Algorithm AS 241, PPND16 (M. J. Wichura 1988): near the middle in r = 0.425^2 - (p - 1/2)^2, in
// the tails in r = sqrt(-ln(tail)), less 1.6 or 5. About 1 part in 10^16.
constexpr Ratio kMiddle = {
    {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080},
    {5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
     5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0}};
constexpr Ratio kNearTail = {
    {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590,
     1.42343711074968357734},
    {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
     2.05319162663775882187, 1.0}};
constexpr Ratio kFarTail = {
    {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
     5.46378491116411436990, 6.65790464350110377720},
    {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0}};

}  // namespace

double NormalCdf(double x) {
  const double tail = 0.5 * QuickErfc(std::abs(x) / std::numbers::sqrt2);
  return x > 0 ? 1 - tail : tail;
}

double NormalQuantile(double probability) {
  ESPALIER_CHECK(probability > 0 && probability < 1, "a quantile needs a probability in (0, 1)");
  constexpr double kMiddleHalf = 0.425;
  const double from_middle = probability - 0.5;
  if (std::abs(from_middle) <= kMiddleHalf) {
    return from_middle * kMiddle.At(kMiddleHalf * kMiddleHalf - from_middle * from_middle);
  }
  const double r = std::sqrt(-PortableLog(std::min(probability, 1 - probability)));
  constexpr double kFar = 5;
  const double x = r <= kFar ? kNearTail.At(r - 1.6) : kFarTail.At(r - kFar);
  return from_middle < 0 ? -x : x;
}

double NormalMass(double low, double high) {
  // Above zero both probabilities are near one: the mirrored interval keeps the small difference.
  if (low > 0) return NormalCdf(-low) - NormalCdf(-high);
  return NormalCdf(high) - NormalCdf(low);
}

// The density's series of even derivatives, phi(m) h (1 + He2(m) h^2/24 + He4(m) h^4/1920 + ...),
// of which the next term is below 1 in 10^11.
double LogNarrowMass(double middle, double width, double log_width) {
  const double square = middle * middle;
  const double h = width * width;
  const double more = h * ((square - 1) / 24 + h * ((square - 6) * square + 3) / 1920);
  const double log_one_more = more * (1 - more * (0.5 - more * (1.0 / 3 - more / 4)));
  constexpr double kLogRoot = 0.91893853320467274;  // ln sqrt(2 pi)
  return log_one_more - 0.5 * square - kLogRoot + log_width;
}

double LogNormalMass(double low, double high) {
  if (low > 0) return LogNormalMass(-high, -low);
  const double middle = 0.5 * (low + high);
  const double width = high - low;
  if (IsNarrow(middle, width)) return LogNarrowMass(middle, width, QuickLog(width));
  // Some share of it lies where a double can hold it.
  constexpr double kNear = -30;
  if (high > kNear) return QuickLog(NormalMass(low, high));
  // In the far tail: ln(a - b) = ln a + ln(1 - b / a), with a wide interval's b far below a.
  const double a = QuickLogErfc(-high / std::numbers::sqrt2);
  const double b = QuickLogErfc(-low / std::numbers::sqrt2);
  return a + QuickLog(0.5 * (1 - QuickExp(b - a)));
}

}  // namespace espalier
