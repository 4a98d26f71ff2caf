#include "tuner/web/view/copied_curve.h"

#include <algorithm>

#include "tuner/core/state/study_facts.h"
#include "tuner/web/view/column.h"
#include "tuner/web/view/json_text.h"

namespace espalier::view {

namespace {

// What a trial has held up to a moment, asked for moments that mostly ascend.
class SlotTime {
 public:
  explicit SlotTime(const std::vector<CopiedCurve::Held>& held) : held_(held) {}

  double Until(Time at) {
    if (at < last_) {
      next_ = 0;
      closed_s_ = 0;
    }
    last_ = at;
    while (next_ < held_.size() && held_[next_].to != Time{} && held_[next_].to <= at) {
      closed_s_ += SecondsBetween(held_[next_].from, held_[next_].to) * held_[next_].slots;
      ++next_;
    }
    if (next_ == held_.size() || held_[next_].from >= at) return closed_s_;
    return closed_s_ + SecondsBetween(held_[next_].from, at) * held_[next_].slots;
  }

 private:
  const std::vector<CopiedCurve::Held>& held_;
  std::size_t next_ = 0;
  double closed_s_ = 0;
  Time last_;
};

}  // namespace

CopiedCurve HeadOfCurve(const Trial& trial, const StudySpec& spec) {
  CopiedCurve curve;
  curve.id = trial.id;
  curve.number = trial.number;
  curve.state = trial.state;
  curve.infeasible = BreaksIfTold(spec, trial);
  for (const SlotSpan& span : trial.spans) {
    curve.held.push_back({span.from, span.to, static_cast<double>(span.slots.size())});
  }
  return curve;
}

std::vector<double> PlacesOn(CurvesWanted::Axis axis, bool log, const CopiedCurve& curve) {
  std::vector<double> places;
  places.reserve(curve.values.size());
  SlotTime held(curve.held);
  for (const IntermediateValue& value : curve.values) {
    double place = kUnknown;
    switch (axis) {
      case CurvesWanted::Axis::kStep:
        place = static_cast<double>(value.step);
        break;
      case CurvesWanted::Axis::kTime:
        place = SecondsOf(value.at);
        break;
      case CurvesWanted::Axis::kProgress:
        if (value.progress > 0) place = value.progress;
        break;
      case CurvesWanted::Axis::kSlotSeconds:
        place = held.Until(value.at);
        break;
    }
    places.push_back(log && !(place > 0) ? kUnknown : place);
  }
  return places;
}

}  // namespace espalier::view
