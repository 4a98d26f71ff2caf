#include "search_spaces/unit_interval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check.h"
#include "search_spaces/gaussian.h"
#include "search_spaces/overloaded.h"
#include "search_spaces/portable_math.h"

namespace espalier {
namespace {

// Where a bell's tails are cut: 2^-53, the step of Random::Uniform.
constexpr double kSmallestTail = 0x1.0p-53;

// A distribution before rounding to q, as quantile function and its inverse. Quantiles are what
// draws are made of, and the same on every machine. The inverse is for models of past trials, many
// at a time: it takes the quick logarithm.

double UniformQuantile(double low, double high, double u) {
  return std::clamp(low + (high - low) * u, low, high);
}
double UniformProbability(double low, double high, double x) {
  return std::clamp((x - low) / (high - low), 0.0, 1.0);
}
double LogUniformQuantile(double low, double high, double u) {
  return std::clamp(PortableExp(UniformQuantile(PortableLog(low), PortableLog(high), u)), low,
                    high);
}
double LogUniformProbability(double low, double high, double x) {
  if (x <= low) return 0;
  return UniformProbability(QuickLog(low), QuickLog(high), QuickLog(x));
}
double BellQuantile(double mu, double sigma, double u) {
  return mu + sigma * NormalQuantile(std::clamp(u, kSmallestTail, 1 - kSmallestTail));
}
double BellProbability(double mu, double sigma, double x) { return NormalCdf((x - mu) / sigma); }
double LogBellQuantile(double mu, double sigma, double u) {
  return std::min(PortableExp(BellQuantile(mu, sigma, u)), std::numeric_limits<double>::max());
}
double LogBellProbability(double mu, double sigma, double x) {
  return x <= 0 ? 0 : BellProbability(mu, sigma, QuickLog(x));
}

double Clipped(double x, double q, double low, double high) {
  return std::clamp(RoundToMultiple(x, q), low, high);
}

// The cell of all draws that round to the multiple of q nearest to x.
template <typename Probability>
UnitCell RoundedCell(double x, double q, Probability probability) {
  const double multiple = std::nearbyint(x / q);
  return {probability((multiple - 0.5) * q), probability((multiple + 0.5) * q)};
}

std::uint64_t Width(const RandInt& d) {
  return static_cast<std::uint64_t>(d.high) - static_cast<std::uint64_t>(d.low);
}

ParameterValue RandIntAt(const RandInt& d, double u) {
  const auto n = static_cast<double>(Width(d));
  const double at = std::floor(std::clamp(u, 0.0, 1.0) * n);
  const std::uint64_t index = at >= n ? Width(d) - 1 : static_cast<std::uint64_t>(at);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(d.low) + index);
}

UnitCell RandIntCell(const RandInt& d, double x) {
  const auto n = static_cast<double>(Width(d));
  const double index = x - static_cast<double>(d.low);
  return {index / n, (index + 1) / n};
}

}  // namespace

double RoundToMultiple(double x, double q) {
  // nearbyint in the default rounding mode sends ties to even. No negative zero.
  return std::nearbyint(x / q) * q + 0.0;
}

ParameterValue FromUnit(const Distribution& distribution, double u) {
  return std::visit(
      Overloaded{
          [](const Choice&) -> ParameterValue {
            CheckFailed(__FILE__, __LINE__, "numeric", "a choice has no order");
          },
          [u](const RandInt& d) { return RandIntAt(d, u); },
          [u](const Uniform& d) -> ParameterValue { return UniformQuantile(d.low, d.high, u); },
          [u](const QUniform& d) -> ParameterValue {
            return Clipped(UniformQuantile(d.low, d.high, u), d.q, d.low, d.high);
          },
          [u](const LogUniform& d) -> ParameterValue {
            return LogUniformQuantile(d.low, d.high, u);
          },
          [u](const QLogUniform& d) -> ParameterValue {
            return Clipped(LogUniformQuantile(d.low, d.high, u), d.q, d.low, d.high);
          },
          [u](const Normal& d) -> ParameterValue { return BellQuantile(d.mu, d.sigma, u); },
          [u](const QNormal& d) -> ParameterValue {
            return RoundToMultiple(BellQuantile(d.mu, d.sigma, u), d.q);
          },
          [u](const LogNormal& d) -> ParameterValue { return LogBellQuantile(d.mu, d.sigma, u); },
          [u](const QLogNormal& d) -> ParameterValue {
            return std::min(RoundToMultiple(LogBellQuantile(d.mu, d.sigma, u), d.q),
                            std::numeric_limits<double>::max());
          }},
      distribution);
}

UnitCell ToUnit(const Distribution& distribution, const ParameterValue& value) {
  const std::optional<double> number = NumberOf(value);
  ESPALIER_CHECK(number.has_value(), "a numeric distribution has numeric values");
  const double x = *number;
  const auto point = [](double u) { return UnitCell{u, u}; };
  return std::visit(
      Overloaded{
          [](const Choice&) -> UnitCell {
            CheckFailed(__FILE__, __LINE__, "numeric", "a choice has no order");
          },
          [&](const RandInt& d) { return RandIntCell(d, x); },
          [&](const Uniform& d) { return point(UniformProbability(d.low, d.high, x)); },
          [&](const QUniform& d) {
            return RoundedCell(x, d.q,
                               [&d](double e) { return UniformProbability(d.low, d.high, e); });
          },
          [&](const LogUniform& d) { return point(LogUniformProbability(d.low, d.high, x)); },
          [&](const QLogUniform& d) {
            return RoundedCell(x, d.q,
                               [&d](double e) { return LogUniformProbability(d.low, d.high, e); });
          },
          [&](const Normal& d) { return point(BellProbability(d.mu, d.sigma, x)); },
          [&](const QNormal& d) {
            return RoundedCell(x, d.q,
                               [&d](double e) { return BellProbability(d.mu, d.sigma, e); });
          },
          [&](const LogNormal& d) { return point(LogBellProbability(d.mu, d.sigma, x)); },
          [&](const QLogNormal& d) {
            return RoundedCell(x, d.q,
                               [&d](double e) { return LogBellProbability(d.mu, d.sigma, e); });
          }},
      distribution);
}

}  // namespace espalier
