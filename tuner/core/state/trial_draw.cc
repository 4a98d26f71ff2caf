#include "tuner/core/state/trial_draw.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace espalier {

namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

absl::Status NoDraw(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(text), "\" does not say what a trial was drawn from"));
}

// "3" or "3-5", with the mark between two.
std::optional<std::pair<std::int64_t, std::int64_t>> ReadPair(const std::string& text, char mark) {
  const std::size_t between = text.find(mark);
  std::pair<std::int64_t, std::int64_t> read;
  if (!absl::SimpleAtoi(text.substr(0, between), &read.first)) return std::nullopt;
  read.second = read.first;
  if (between == std::string::npos || absl::SimpleAtoi(text.substr(between + 1), &read.second)) {
    return read;
  }
  return std::nullopt;
}

// Ascending, none below `least`; a range does not end before it begins.
bool ReadPairs(const std::string& text, char mark, Pairs& pairs) {
  std::int64_t least = 0;
  for (const std::string& each : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const auto pair = ReadPair(each, mark);
    if (!pair || pair->first < least || (mark == '-' && pair->second < pair->first)) return false;
    least = (mark == '-' ? pair->second : pair->first) + 1;
    pairs.push_back(*pair);
  }
  return true;
}

}  // namespace

void Append(std::vector<TrialDraw::Range>& ranges, std::int64_t number) {
  if (!ranges.empty() && ranges.back().second + 1 == number) {
    ranges.back().second = number;
  } else {
    ranges.emplace_back(number, number);
  }
}

bool Holds(const std::vector<TrialDraw::Range>& ranges, std::int64_t number) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), number,
      [](std::int64_t n, const TrialDraw::Range& range) { return n < range.first; });
  return after != ranges.begin() && number <= std::prev(after)->second;
}

std::string TextOf(const std::vector<TrialDraw::Range>& ranges) {
  return absl::StrJoin(ranges, ",", [](std::string* out, const TrialDraw::Range& range) {
    absl::StrAppend(out, range.first);
    if (range.second != range.first) absl::StrAppend(out, "-", range.second);
  });
}

std::string HeldBackText(const std::vector<TrialDraw::HeldBack>& held_back) {
  return absl::StrJoin(held_back, ",", [](std::string* out, const TrialDraw::HeldBack& held) {
    absl::StrAppend(out, held.first, "@", held.second);
  });
}

std::string ToText(const TrialDraw& draw) {
  std::string text = absl::StrCat(draw.known);
  const auto add = [&text](const char* name, const std::string& numbers) {
    if (!numbers.empty()) absl::StrAppend(&text, " ", name, " ", numbers);
  };
  add("running", TextOf(draw.running));
  add("held_back", HeldBackText(draw.held_back));
  add("left_out", TextOf(draw.left_out));
  add("given", absl::StrJoin(draw.given, ","));
  add("by", draw.by);
  return text;
}

absl::StatusOr<TrialDraw> ReadTrialDraw(std::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(std::string(text), ' ');
  TrialDraw draw;
  bool good = absl::SimpleAtoi(words.front(), &draw.known) && words.size() % 2 == 1;
  for (std::size_t i = 1; good && i < words.size(); i += 2) {
    const std::string& numbers = words[i + 1];
    if (words[i] == "running") {
      good = ReadPairs(numbers, '-', draw.running);
    } else if (words[i] == "held_back") {
      good = ReadPairs(numbers, '@', draw.held_back);
    } else if (words[i] == "left_out") {
      good = ReadPairs(numbers, '-', draw.left_out);
    } else if (words[i] == "given") {
      Pairs given;
      good = ReadPairs(numbers, '@', given);
      for (const auto& [place, _] : given) draw.given.push_back(static_cast<int>(place));
    } else if (words[i] == "by") {
      draw.by = numbers;
    }  // a later release may say more
  }
  if (!good) return NoDraw(text);
  return draw;
}

}  // namespace espalier
