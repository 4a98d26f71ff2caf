#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

// Where the training of a trial comes from that did not begin afresh.
struct Lineage {
  std::int64_t parent = -1;  // number of the trial with whose checkpoint it begins; -1: none
  // The first of its line, which began afresh; its seed is that of all of them, so that a clone
  // goes on in the order of samples that its parent was in the midst of.
  std::int64_t founder = -1;
  std::int64_t step = -1;     // of that checkpoint; -1: the trial has not been given it yet
  std::string fingerprint{};  // likewise

  bool cloned() const { return parent >= 0; }
  bool awaited() const { return cloned() && step < 0; }

  friend bool operator==(const Lineage&, const Lineage&) = default;
};

// As it is kept: "", "3 0" (trial 3, whose line began with trial 0), "3 0 120 FINGERPRINT".
std::string ToText(const Lineage& lineage);
absl::StatusOr<Lineage> ReadLineage(std::string_view text);

}  // namespace espalier
