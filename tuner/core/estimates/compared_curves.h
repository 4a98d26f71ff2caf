#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "tuner/core/estimates/equal_progress.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/state/study.h"

namespace espalier {

// The curves of a study's trials by number, as pruners and the promise model compare them: step by
// step, or at equal progress where batches adapt. Kept from look to look, so that one more report
// in a study of thousands of trials costs no walk over all of them.
//
// Not thread safe. One for each study, which is always the same.
class ComparedCurves {
 public:
  // To be told of each change of a trial of the study before the next look.
  void Changed(const Trial& trial) { stale_.insert(trial.number); }

  // Good until the next change of a trial of the study. The order may be changed for the moment of
  // a look, if it is restored.
  std::span<Curve> Of(const TunerState& state, const Study& study);

  // How many of its curve's points there were before the trial's newest value came. Requires a
  // curve of the last Of, and a value.
  std::size_t PointsBeforeNewest(const Trial& trial);
  // The step to which its curve had come by the first `values` of its values; 0: there was no point
  // yet. Requires a curve of the last Of, and so many values.
  std::int64_t StepWith(const Trial& trial, std::size_t values) const;

 private:
  std::vector<Curve> curves_;
  std::set<std::int64_t> stale_;  // numbers
  bool adaptive_ = false;
  double unit_ = 0;  // in which curves_ are
  EqualProgress equal_progress_;
};

// The compared curves of studies that were looked at. They observe changes as the core makes them,
// and are forgotten with the study's end.
class CurvesOfStudies {
 public:
  std::span<Curve> Of(const TunerState& state, const Study& study) {
    return studies_[study.id].Of(state, study);
  }
  std::size_t PointsBeforeNewest(const Trial& trial) {
    return studies_.at(trial.study).PointsBeforeNewest(trial);
  }
  std::int64_t StepWith(const Trial& trial, std::size_t values) const {
    return studies_.at(trial.study).StepWith(trial, values);
  }
  // After it has been applied.
  void Observe(const TunerState& state, const Change& change);

 private:
  std::map<StudyId, ComparedCurves> studies_;
};

}  // namespace espalier
