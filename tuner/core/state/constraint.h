#pragma once

#include <cstddef>
#include <string>

namespace espalier {

inline constexpr std::size_t kMostConstraints = 16;  // of a study

// What the best trial of a study has to keep: a figure that trials report, at its newest.
struct Constraint {
  std::string figure;
  bool at_least = false;  // else at most
  double bound = 0;       // finite

  // How far a figure is from keeping to it, as samplers take it: at most 0 where it does. NaN of
  // NaN, which does not.
  double Violation(double value) const { return at_least ? bound - value : value - bound; }

  friend bool operator==(const Constraint&, const Constraint&) = default;
};

// As study files have it: "latency_ms <= 20". The number is exact.
std::string ToText(const Constraint& constraint);

}  // namespace espalier
