#include "tuner/cli/views/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

constexpr double kOutlierFactor = 3;  // interquartile ranges beyond the quartile
constexpr double kLowerQuartile = 0.25;
constexpr double kUpperQuartile = 0.75;
constexpr double kMargin = 0.04;       // of the range, at either end
constexpr double kMarginOfOne = 0.05;  // of the value, where all are the same
constexpr double kMarginOfZero = 0.5;

constexpr double kMinute_s = 60;
constexpr double kDay_s = 86400;
// Steps between times that people count by; shorter and longer ones are decimal.
constexpr double kTimeSteps_s[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
                                   600, 900, 1800, 3600, 7200, 10800, 21600, 43200, kDay_s};

double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

// Multiples of the step within the range.
std::vector<double> Multiples(double step, double low, double high) {
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);
  }
  return ticks;
}

// 1h02m03.5s.
std::string LongDuration(double seconds, int decimals) {
  const double unit = std::pow(10, decimals);
  const double rounded = std::round(seconds * unit) / unit;
  const auto minutes = static_cast<std::int64_t>(rounded / kMinute_s);
  const double rest = std::max(0.0, rounded - static_cast<double>(minutes) * kMinute_s);
  const int width = decimals == 0 ? 2 : 3 + decimals;
  if (minutes == 0) return fmt::format("{:.{}f}s", rest, decimals);
  if (minutes < 60) return fmt::format("{}m{:0{}.{}f}s", minutes, rest, width, decimals);
  return fmt::format("{}h{:02}m{:0{}.{}f}s", minutes / 60, minutes % 60, rest, width, decimals);
}

// With as many digits as it takes for all to differ, and no more.
template <typename Text>
std::vector<std::string> Distinct(const std::vector<double>& ticks, int digits, int most,
                                  const Text& text) {
  std::vector<std::string> labels;
  for (; digits <= most; ++digits) {
    labels.clear();
    for (const double tick : ticks) labels.push_back(text(tick, digits));
    if (std::set<std::string>(labels.begin(), labels.end()).size() == labels.size()) break;
  }
  return labels;
}

}  // namespace

std::vector<double> AxisTicks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double raw = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999) {
      step = factor * power;
      break;
    }
  }
  return Multiples(step, low, high);
}

std::vector<double> TimeTicks(double low_s, double high_s, int count) {
  const double least = (high_s - low_s) / count;
  if (least < kTimeSteps_s[0] / 2) return AxisTicks(low_s, high_s, count);
  if (least > kDay_s) {
    std::vector<double> days = AxisTicks(low_s / kDay_s, high_s / kDay_s, count);
    for (double& day : days) day *= kDay_s;
    return days;
  }
  return Multiples(
      *std::lower_bound(std::begin(kTimeSteps_s), std::end(kTimeSteps_s), least * 0.999), low_s,
      high_s);
}

std::vector<std::string> ValueLabels(const std::vector<double>& ticks) {
  return Distinct(ticks, 4, 17,
                  [](double tick, int digits) { return fmt::format("{:.{}g}", tick, digits); });
}

std::vector<std::string> TimeLabels(const std::vector<double>& ticks_s) {
  std::vector<std::string> labels =
      Distinct(ticks_s, 0, 0, [](double tick, int) { return FormatDuration(tick); });
  if (std::set<std::string>(labels.begin(), labels.end()).size() == labels.size()) return labels;
  return Distinct(ticks_s, 0, 9, LongDuration);
}

Range FencedRange(std::vector<double> values, bool maximize) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double reach =
      kOutlierFactor * (Quantile(values, kUpperQuartile) - Quantile(values, kLowerQuartile));
  Range range{values.front(), values.back()};
  if (reach > 0 && maximize) {
    range.low = std::max(range.low, Quantile(values, kLowerQuartile) - reach);
  } else if (reach > 0) {
    range.high = std::min(range.high, Quantile(values, kUpperQuartile) + reach);
  }
  const double same = range.low == 0 ? kMarginOfZero : kMarginOfOne * std::abs(range.low);
  const double margin = range.high > range.low ? kMargin * (range.high - range.low) : same;
  return {range.low - margin, range.high + margin};
}

std::string GridLine(double left, double right, double y, const std::string& label) {
  constexpr double kGap = 8;
  constexpr double kHalfLetter = 4;
  return fmt::format(
      "<line class=\"grid\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>"
      "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
      left, Px(y), right, Px(y), left - kGap, Px(y + kHalfLetter), label);
}

}  // namespace espalier::report
