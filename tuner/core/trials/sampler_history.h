#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/core/samplers/draw.h"
#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/trial_draw.h"

namespace espalier {

// The figure beside a value (Trial::extra) by which a trial tells the value's standard error.
inline constexpr std::string_view kStandardErrorFigure = "standard_error";

// As samplers see a trial that has ended, or is held back with the value of its last step.
Observation ObservationOf(const Trial& trial, const Parameters* parameters, bool held_back);

// What a sampler learns from: the results of a study's trials that have ended, and the trials under
// way. A trial that its pruner holds back stands among the former, as if it had been pruned, until
// it may go on. Clones are none of these: what they come to is owed to their parents' parameters,
// too. What has ended stays as it is, and is kept: so a look at a long study costs what has changed
// since the last one. One owner.
class SamplerHistory {
 public:
  // What the study's trials are to those who know them.
  struct KnownTrials {
    // With what a trial runs: a pointer that is good until the next call for the same trial. One
    // that has not all of its parameters yet is left out: no sampler could make anything of it.
    std::function<const Parameters*(const Trial&)> parameters_of;
    std::function<bool(const Trial&)> held_by_pruner;
  };

  void Update(const TunerState& state, const Study& study, const KnownTrials& trials);

  // As of the last update. By number.
  std::span<const Observation> ended() const { return with_held_.empty() ? ended_ : with_held_; }
  std::span<const Parameters* const> running() const { return running_; }
  bool tells_of_constraints() const { return ended_tell_ || held_tell_; }  // any of `ended`
  const TrialDraw& names() const { return names_; }  // of which trials the above is
  // What `ended` looks into, for as long as anybody has it, whatever becomes of this.
  std::shared_ptr<const void> kept() const { return kept_; }

 private:
  const KeptTrial& Keep(const Trial& trial, const Parameters& parameters);
  // Of a trial that is held back; its parameters are kept once, however often it is looked at.
  Observation Held(const Trial& trial, const Parameters& parameters);

  // Nothing in it ever moves or changes, so that others may read what they have pointers to.
  std::shared_ptr<std::deque<KeptTrial>> kept_ = std::make_shared<std::deque<KeptTrial>>();
  std::vector<Observation> ended_;  // by number
  std::vector<std::int64_t> open_;  // numbers of the others of the first `seen_` trials, ascending
  std::int64_t seen_ = 0;
  std::map<std::int64_t, const Parameters*> kept_of_held_;  // by number, of those once held back
  std::vector<Observation> with_held_;  // likewise, and those held back; empty: none is
  bool ended_tell_ = false;  // of constraints
  bool held_tell_ = false;
  std::vector<const Parameters*> running_;
  TrialDraw names_;
};

}  // namespace espalier
