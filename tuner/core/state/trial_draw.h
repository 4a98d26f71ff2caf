#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace espalier {

// What a trial's parameters were drawn from: what its study's sampler was told. With the study's
// seed, the trial's number, and parameters, values and times of ends of the trials that it names,
// which stay as they are, it says all that a suggestion follows from.
struct TrialDraw {
  // From the first to the last of these numbers.
  using Range = std::pair<std::int64_t, std::int64_t>;
  // A trial that its pruner held back, as if it had ended with its value of this step.
  using HeldBack = std::pair<std::int64_t, std::int64_t>;

  std::int64_t known = 0;           // so many trials there were: those with the first numbers
  std::vector<Range> running;       // of these, ascending: they had not ended
  std::vector<Range> left_out;      // likewise, and they had no parameters yet
  std::vector<HeldBack> held_back;  // ascending; all others had ended
  std::vector<int> given;           // parameters that were not drawn, by their place in the space
  std::string by;                   // a sampler that left the suggestion to this one; empty: none

  friend bool operator==(const TrialDraw&, const TrialDraw&) = default;
};

// Adds a number that is above all of the ranges.
void Append(std::vector<TrialDraw::Range>& ranges, std::int64_t number);
bool Holds(const std::vector<TrialDraw::Range>& ranges, std::int64_t number);

// As it is kept: "128 running 120-125,127 held_back 90@9 left_out 3 given 0,2 by gp".
std::string ToText(const TrialDraw& draw);
absl::StatusOr<TrialDraw> ReadTrialDraw(std::string_view text);

// "120-125,127", for people; empty: none.
std::string TextOf(const std::vector<TrialDraw::Range>& ranges);
std::string HeldBackText(const std::vector<TrialDraw::HeldBack>& held_back);  // "90@9"

}  // namespace espalier
