#pragma once

#include <map>
#include <span>
#include <vector>

#include "tuner/core/state/curve.h"
#include "tuner/core/state/study.h"

namespace espalier {

// Curves of an adaptive-batch study at equal scale-invariant progress (the iterations at the
// initial batch that training so far is worth, as AdaScale SGD counts them: Johnson et al., ICML
// 2020). A trial whose batch has grown makes less progress in one of its own steps (an epoch, say),
// so trials must not be compared step by step.
//
// The unit is the study's own: the most progress that any trial has made in one reported step. A
// step at the initial batch makes exactly that, since no larger batch makes more of the same
// samples. A curve is then read at the whole multiples 1, 2, 3, ... of the unit, where a trial at
// its initial batch has its reported steps and values; between two reports the value is
// interpolated linearly in progress, and before the first there is none. So rungs and warm-ups in
// steps mean what they mean in a study of fixed batches.
//
// Two values do not wait for the next multiple but stand at it at once: one that is not finite, and
// the last one of a trial that has ended.
//
// Where no trial tells its progress (plain programs), curves are left as they were reported; so is
// the curve of a single trial that does not.
//
// Not thread safe. Keeps what it has worked out; spans are good until the next call.
class EqualProgress {
 public:
  // Takes the newest values of a trial of the study into the unit. To be called for each of them
  // before the first Points.
  void Take(const Trial& trial);

  // `ended`: so that its last value stands at once, as above.
  std::span<const IntermediateValue> Points(const Trial& trial, bool ended);
  // The curves of its other metrics, likewise.
  std::span<const std::vector<IntermediateValue>> Others(const Trial& trial, bool ended);
  // Progress that counts as one step at present; 0: none has been reported.
  double unit() const { return unit_; }
  // The points of a trial that has not ended by the first `values` of its values alone.
  std::vector<IntermediateValue> PointsOfFirst(const Trial& trial, std::size_t values) const;

 private:
  struct Known {
    std::size_t values = 0;  // of the trial, when this was worked out
    bool ended = false;
    double unit = 0;
    std::vector<IntermediateValue> points{};
    std::vector<std::vector<IntermediateValue>> others{};
  };
  const Known& KnownOf(const Trial& trial, bool ended);

  double unit_ = 0;  // progress of one step at the initial batch; 0: none reported
  std::map<TrialId, std::size_t> taken_;
  std::map<TrialId, Known> known_;
};

// The curve at whole multiples of `unit`, as above.
std::vector<IntermediateValue> AtEqualProgress(std::span<const IntermediateValue> values,
                                               bool ended, double unit);

}  // namespace espalier
