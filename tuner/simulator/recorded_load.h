#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tuner/core/state/change.h"
#include "tuner/simulator/workload.h"

namespace espalier {

// A study of a service's own database as a load: its trials again, in their order, with the curves
// that they reported and at the speed they trained at, under another policy, pruner or pool.
//
// Speed is what the record shows: the mean seconds of a reported step on each number of slots that
// the trial held for the whole of a step. On other numbers time goes with a power of the slots,
// which is fitted to all trials that trained on several; where none did, twice the slots take half
// the time. A trial without a batch size is a plain command and keeps to one slot. Trials that
// reported nothing are left out.
//
// The values that a trial would have reported beyond its record are unknown: its last value is
// held, and so are its figures. One that it has never told is NaN at its end. Count such trials
// with BeyondRecord before believing a replay under a milder pruner.
class RecordedLoad : public Workload {
 public:
  // How many seconds trials paused for a resize in the record; none if nothing was resized.
  virtual std::optional<double> MeanPause() const = 0;
  // The recorded trial that this one of the simulated study was.
  struct Origin {
    TrialId id;
    std::int64_t number = 0;
  };
  virtual Origin OriginOf(const Trial& trial) const = 0;
  // Its id in the record.
  virtual StudyId study_id() const = 0;
  // How many trials of this simulated study went on past their record.
  virtual int BeyondRecord(const TunerState& simulated) const = 0;
};

// NotFound for a study that the state does not hold, FailedPrecondition for one without any value.
absl::StatusOr<std::unique_ptr<RecordedLoad>> MakeRecordedLoad(const TunerState& state,
                                                               const std::string& study);

// What became of the study itself, named as the figures of its simulation (TimelineOf). NaN:
// unknown, as the finish of a study that goes on.
std::vector<std::pair<std::string, double>> FiguresOfRecord(const TunerState& state,
                                                            const Study& study);

}  // namespace espalier
