#include "tuner/server/http/output_cursor.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace espalier {

namespace {

constexpr std::size_t kWindow = 1024;  // bytes that are summed up
constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;

// A polynomial in kBase (Karp and Rabin 1987): of the next window it is one step away.
std::uint64_t Sum(std::string_view window) {
  std::uint64_t sum = 0;
  for (const char c : window) sum = sum * kBase + static_cast<unsigned char>(c);
  return sum;
}

std::uint64_t Power(std::size_t exponent) {
  std::uint64_t power = 1;
  for (std::size_t i = 0; i < exponent; ++i) power *= kBase;
  return power;
}

// The end of the only window of that sum.
std::optional<std::size_t> FindWindow(std::uint64_t sum, std::size_t window,
                                      std::string_view text) {
  if (text.size() < window) return std::nullopt;
  const std::uint64_t leaves = Power(window - 1);
  std::uint64_t now = Sum(text.substr(0, window));
  std::optional<std::size_t> found;
  for (std::size_t end = window;; ++end) {
    if (now == sum) {
      if (found) return std::nullopt;
      found = end;
    }
    if (end == text.size()) return found;
    now -= leaves * static_cast<unsigned char>(text[end - window]);
    now = now * kBase + static_cast<unsigned char>(text[end]);
  }
}

}  // namespace

std::string CursorAfter(std::string_view text) {
  const std::size_t window = std::min(text.size(), kWindow);
  return absl::StrCat(text.size(), "-", Sum(text), "-", Sum(text.substr(text.size() - window)));
}

std::optional<std::size_t> FindCursor(std::string_view cursor, std::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::string_view(cursor.data(), cursor.size()), '-');
  std::uint64_t length = 0;
  std::uint64_t all = 0;
  std::uint64_t last = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &length) ||
      !absl::SimpleAtoi(parts[1], &all) || !absl::SimpleAtoi(parts[2], &last)) {
    return std::nullopt;
  }
  const std::size_t window = std::min<std::size_t>(length, kWindow);
  if (window == 0) return 0;
  // Its last bytes alone would tell too little: a program may print the same line for hours.
  if (length <= text.size() && Sum(text.substr(0, length)) == all) return length;
  return FindWindow(last, window, text);
}

}  // namespace espalier
