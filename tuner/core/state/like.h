#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search_spaces/parameter.h"

namespace espalier {

// A study that begins with trials of another one has so many of them at most, in so much JSON.
inline constexpr std::size_t kMaxTrialsTaken = 100;
inline constexpr std::size_t kMaxTakenBytes = std::size_t{64} << 10;
inline constexpr double kLeastScore = -5;

// A trial of another study, as far as it tells anything of a study that is like it.
struct ScoredTrial {
  // Those that the space of the study has, too.
  Parameters parameters{};
  // How good its value is among those of the other study: 1 as the best, 0 as the median of
  // complete ones, below what is worse than that, in the same unit and drawn together as by a
  // logarithm. Values of two studies are never compared.
  double score = 0;
  // Likewise of the second objective and of further ones.
  std::vector<double> other_scores{};

  friend bool operator==(const ScoredTrial&, const ScoredTrial&) = default;
};

// The study that a study is expected to be like. It may change or be deleted: what is known of it
// is here.
struct LikeStudy {
  std::string study{};      // its name; empty: there is none
  std::int64_t ended = 0;   // trials that had ended there when they were looked at
  std::int64_t within = 0;  // of these, those within the study's space
  // Some of these, the best first; empty: they were not looked at yet.
  std::vector<ScoredTrial> trials{};

  friend bool operator==(const LikeStudy&, const LikeStudy&) = default;
};

}  // namespace espalier
