#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "tuner/core/state/curve.h"

namespace espalier {

// Whole curves of a study's trials, less is better, by step from 1.
using WholeCurves = std::vector<std::vector<double>>;

struct CurveFamily {
  std::string_view name;
  WholeCurves (*draw)(std::uint64_t seed, int trials);
  int last_step;
};
// Poolbench; power laws that cross; plateaus with much noise; power laws of which a quarter diverge
// from some step on; power laws that all drop at half-time, as with a learning rate schedule.
const std::vector<CurveFamily>& CurveFamilies();

enum class Seen {
  kTogether,  // all trials are at one step, none has ended
  kSpread,    // half are complete, the others are anywhere
  kThinned,   // successive halving has stopped most; the others are anywhere
};

// A study in progress, and who of those that may still end well will be the best.
class PartialStudy {
 public:
  PartialStudy(const WholeCurves& whole, Seen seen, Random& random);
  PartialStudy(const PartialStudy&) = delete;
  PartialStudy& operator=(const PartialStudy&) = delete;

  const std::vector<Curve>& curves() const { return curves_; }
  std::size_t best() const { return best_; }

 private:
  std::vector<std::vector<IntermediateValue>> points_;
  std::vector<Curve> curves_;
  std::size_t best_ = 0;
};

}  // namespace espalier
