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

// A polynomial in kBase (Karp and Rabin 1987): of the next window it is one step away. `sum`: that
// of what comes before.
std::uint64_t Sum(std::string_view window, std::uint64_t sum = 0) {
  for (const char c : window) sum = sum * kBase + static_cast<unsigned char>(c);
  return sum;
}

std::string_view LastWindow(std::string_view text) {
  return text.substr(text.size() - std::min(text.size(), kWindow));
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

struct Cursor {
  std::uint64_t length = 0;
  std::uint64_t all = 0;   // the sum of so many bytes
  std::uint64_t last = 0;  // and of the last of them
};

std::optional<Cursor> ReadCursor(std::string_view text) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '-');
  Cursor cursor;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &cursor.length) ||
      !absl::SimpleAtoi(parts[1], &cursor.all) || !absl::SimpleAtoi(parts[2], &cursor.last)) {
    return std::nullopt;
  }
  return cursor;
}

}  // namespace

TextFromCursor FollowFrom(std::string_view cursor, std::string_view text) {
  const std::optional<Cursor> read = ReadCursor(cursor);
  const bool as_long = read && read->length <= text.size();
  const std::size_t length = as_long ? static_cast<std::size_t>(read->length) : 0;
  const std::uint64_t before = Sum(text.substr(0, length));
  TextFromCursor from;
  from.next =
      absl::StrCat(text.size(), "-", Sum(text.substr(length), before), "-", Sum(LastWindow(text)));
  if (!read) return from;
  // Its last bytes alone would tell too little: a program may print the same line for hours.
  if (read->length == 0 || (as_long && before == read->all)) {
    from.start = length;
  } else {
    const std::size_t window = std::min<std::size_t>(read->length, kWindow);
    from.start = FindWindow(read->last, window, text);
  }
  return from;
}

}  // namespace espalier
