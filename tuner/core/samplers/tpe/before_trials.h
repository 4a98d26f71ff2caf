#pragma once

#include <span>
#include <vector>

#include "tuner/core/samplers/tpe/split.h"

namespace espalier::samplers {

// The trials of a study, and what they count as, with those of another study (SamplerInput::before)
// as older ones beside them. Each study is split by itself: of the other's the best tenth is good
// (as much as `gamma` says), the others are bad. There are fewer of them the more trials have
// ended, whatever became of them: 20 in (20 + ended), the best of the good ones, and bad ones of
// all ranks.
class TrialsWithBefore {
 public:
  // The input must outlive it.
  TrialsWithBefore(const SamplerInput& input, const SplitSettings& settings);

  // The other study's, with numbers below 0, and then the study's own.
  std::span<const Observation> ended() const { return with_.empty() ? own_ : with_; }
  // Of all of these; results are those of the study alone.
  const TpeSplit& split() const { return split_; }

 private:
  std::span<const Observation> own_;
  TpeSplit split_;
  std::vector<Parameters> completed_;  // of the other study's trials
  std::vector<Observation> with_;      // empty: there are none
};

}  // namespace espalier::samplers
