#include "tuner/cli/views/report/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace espalier::report {
namespace {

struct Color {
  const char* fill;
  const char* ink;
};
constexpr Color kPalette[] = {
    {"#0072b2", "#ffffff"}, {"#e69f00", "#000000"}, {"#009e73", "#ffffff"}, {"#cc79a7", "#000000"},
    {"#56b4e9", "#000000"}, {"#d55e00", "#ffffff"}, {"#8073ac", "#ffffff"}, {"#8c8c8c", "#000000"},
};

constexpr double kOutlierFactor = 3;  // interquartile ranges beyond the quartile
constexpr double kLowerQuartile = 0.25;
constexpr double kUpperQuartile = 0.75;

double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

const Color& ColorOf(std::int64_t number) {
  return kPalette[static_cast<std::size_t>(number < 0 ? 0 : number) % std::size(kPalette)];
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
        out += '\n';
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
  }
  return out;
}

std::string TrialColor(std::int64_t number) { return ColorOf(number).fill; }
std::string InkOn(std::int64_t number) { return ColorOf(number).ink; }

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
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);
  }
  return ticks;
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
  const double margin = range.high > range.low ? 0.04 * (range.high - range.low) : 0.5;
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

std::string Px(double value) { return fmt::format("{:.1f}", value); }

}  // namespace espalier::report
