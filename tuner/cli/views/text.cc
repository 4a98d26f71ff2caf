#include "tuner/cli/views/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <utility>

namespace espalier {
namespace {

bool StartsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string Printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = ' ';
  }
  return out;
}

}  // namespace

std::string FormatValue(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.4g}", value);
}

std::string FormatExactly(double value) {
  if (std::isnan(value)) return "nan";
  return fmt::format("{}", value);
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
  return fmt::format("{}d{:02}h", s / 86400, s % 86400 / 3600);
}

std::string FormatClock(double at) {
  const auto t = static_cast<std::time_t>(at);
  std::tm local{};
  localtime_r(&t, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

namespace {

// Code points that terminals show in two columns, as far as names are likely to have them: those of
// East Asian scripts that Unicode calls wide or fullwidth, and emoji (UAX 11).
constexpr std::pair<std::uint32_t, std::uint32_t> kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x2614, 0x2615},   {0x26A1, 0x26A1},   {0x2705, 0x2705},   {0x2728, 0x2728},
    {0x274C, 0x274C},   {0x2753, 0x2757},   {0x2795, 0x2797},   {0x2B50, 0x2B50},
    {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x18AFF}, {0x1B000, 0x1B2FF}, {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};
// And those that go onto the one before.
constexpr std::pair<std::uint32_t, std::uint32_t> kNarrow[] = {
    {0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};

// The code point of UTF-8 whose first byte this is; what is no UTF-8 is as wide as a letter.
std::uint32_t CodePointAt(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const std::uint32_t first = byte(at);
  const auto rest = [&](std::size_t i) { return byte(at + i) & 0x3FU; };
  if (first >= 0xF0) return (first & 7U) << 18U | rest(1) << 12U | rest(2) << 6U | rest(3);
  if (first >= 0xE0) return (first & 15U) << 12U | rest(1) << 6U | rest(2);
  if (first >= 0xC0) return (first & 31U) << 6U | rest(1);
  return first;
}

std::size_t ColumnsOf(std::uint32_t code_point) {
  const auto holds = [code_point](const auto& range) {
    return code_point >= range.first && code_point <= range.second;
  };
  if (std::any_of(std::begin(kNarrow), std::end(kNarrow), holds)) return 0;
  return std::any_of(std::begin(kWide), std::end(kWide), holds) ? 2 : 1;
}

}  // namespace

std::size_t DisplayWidth(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (StartsCodePoint(text[i])) columns += ColumnsOf(CodePointAt(text, i));
  }
  return columns;
}

std::string Cut(std::string_view text, std::size_t width) {
  std::string clean = Printable(text);
  if (DisplayWidth(clean) <= width) return clean;
  if (width == 0) return {};
  std::size_t bytes = 0;
  for (std::size_t columns = 0; bytes < clean.size(); ++bytes) {
    if (!StartsCodePoint(clean[bytes])) continue;
    columns += ColumnsOf(CodePointAt(clean, bytes));
    if (columns > width - 1) break;
  }
  return clean.substr(0, bytes) + "…";
}

std::string FitLeft(std::string_view text, std::size_t width) {
  std::string out = Cut(text, width);
  out.append(width - DisplayWidth(out), ' ');
  return out;
}

std::string FitRight(std::string_view text, std::size_t width) {
  const std::string out = Cut(text, width);
  return std::string(width - DisplayWidth(out), ' ') + out;
}

std::vector<std::string> Columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      line += last ? Printable(row[i]) : FitLeft(row[i], widths[i]) + "  ";
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> Wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const bool fits =
        !lines.empty() && DisplayWidth(lines.back()) + 1 + DisplayWidth(word) <= width;
    if (fits) lines.back().append(" ").append(word);
    if (!fits) lines.emplace_back(word);
  }
  return lines;
}

std::string Count(std::int64_t n, std::string_view singular) {
  return fmt::format("{} {}{}", n, singular, n == 1 ? "" : "s");
}

}  // namespace espalier
