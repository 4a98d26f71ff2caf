#include "tuner/core/estimates/compared_curves.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>

#include "tuner/core/state/study_facts.h"

namespace espalier {

namespace {

// Whether each final value says how good the trial is.
bool EndsWithNumbers(const StudySpec& spec, const Trial& trial) {
  if (!Counts(spec.direction(), *trial.value)) return false;
  const std::span<const Direction> others = spec.other_directions();
  for (std::size_t i = 0; i < std::min(others.size(), trial.other_values.size()); ++i) {
    if (!Counts(others[i], trial.other_values[i])) return false;
  }
  return true;
}

}  // namespace

std::span<Curve> ComparedCurves::Of(const TunerState& state, const Study& study) {
  adaptive_ = study.spec.batch_mode == BatchMode::kAdaptive;
  for (std::size_t n = curves_.size(); n < study.trials.size(); ++n) {
    stale_.insert(static_cast<std::int64_t>(n));
  }
  curves_.resize(study.trials.size());
  const auto trial_at = [&](std::size_t n) -> const Trial& {
    return state.trials.at(study.trials[n]);
  };
  const auto read = [&](std::size_t n) {
    const Trial& trial = trial_at(n);
    const bool diverged = trial.value && !EndsWithNumbers(study.spec, trial);
    const bool breaks = Breaks(study.spec, trial);
    curves_[n] = {.trial_number = trial.number,
                  .points = trial.values,
                  .ended = Ended(trial.state),
                  .complete = trial.state == TrialState::kComplete && !diverged && !breaks,
                  .pruned = trial.state == TrialState::kPruned,
                  .value = trial.value.value_or(std::nan("")),
                  .ended_at = trial.ended,
                  .others = *trial.other_curves,
                  .breaks = breaks};
    if (!adaptive_) return;
    // A member of a population that was replaced has come no further than where it was compared.
    const bool ended = curves_[n].ended && !(study.spec.population.on() && curves_[n].pruned);
    curves_[n].points = equal_progress_.Points(trial, ended);
    curves_[n].others = equal_progress_.Others(trial, ended);
  };
  if (adaptive_) {
    for (const std::int64_t n : stale_) {
      equal_progress_.Take(trial_at(static_cast<std::size_t>(n)));
    }
  }
  if (adaptive_ && unit_ != equal_progress_.unit()) {
    unit_ = equal_progress_.unit();
    for (std::size_t n = 0; n < curves_.size(); ++n) read(n);
  } else {
    for (const std::int64_t n : stale_) read(static_cast<std::size_t>(n));
  }
  stale_.clear();
  return curves_;
}

std::size_t ComparedCurves::PointsBeforeNewest(const Trial& trial) {
  if (trial.values.empty()) return 0;
  const std::size_t before = trial.values.size() - 1;
  return adaptive_ ? equal_progress_.PointsOfFirst(trial, before).size() : before;
}

std::int64_t ComparedCurves::StepWith(const Trial& trial, std::size_t values) const {
  if (values == 0) return 0;
  if (!adaptive_) return trial.values[values - 1].step;
  const std::vector<IntermediateValue> points = equal_progress_.PointsOfFirst(trial, values);
  return points.empty() ? 0 : points.back().step;
}

void CurvesOfStudies::Observe(const TunerState& state, const Change& change) {
  if (const auto ended = StudyEndedBy(change)) studies_.erase(*ended);
  std::visit(
      [&](const auto& c) {
        using Kind = std::decay_t<decltype(c)>;
        constexpr bool kMovesCurve =
            std::is_same_v<Kind, ValueReported> || std::is_same_v<Kind, FinalValueReported> ||
            std::is_same_v<Kind, TrialStateChanged> || std::is_same_v<Kind, TrialTold>;
        if constexpr (kMovesCurve) {
          const Trial& trial = state.trials.at(c.id);
          if (const auto known = studies_.find(trial.study); known != studies_.end()) {
            known->second.Changed(trial);
          }
        }
      },
      change);
}

}  // namespace espalier
