#pragma once

#include <map>
#include <optional>
#include <set>

#include "allocator/pool/pool.h"
#include "tuner/core/state/turn.h"

namespace espalier {

// The newest promise of each trial of the pool (see promise/promise.h), and which studies' curves
// have changed since theirs was computed. Not durable. One owner.
class Promises {
 public:
  static constexpr double kInterval_s = 1.0;       // between computations for a large study
  static constexpr std::size_t kEveryReport = 24;  // trials up to which a study is never large

  explicit Promises(Turn& turn) : turn_(turn) {}

  // A study of a loaded state that has trials of the pool.
  void TakeUp(StudyId study) { stale_.insert(study); }
  void Observe(const Change& change);
  // Something else than a change says more of how its curves will end.
  void NoteStale(StudyId study) { stale_.insert(study); }

  // Whether the promise of the study's trials is to be computed now. Once for each time that it
  // became stale.
  bool TakeDue(const Study& study);
  void Set(TrialId trial, double promise) { promise_[trial] = promise; }

  // None: it has not been computed yet.
  std::optional<double> Find(TrialId trial) const;
  // What a job's is taken to be until then.
  double Of(TrialId trial) const { return Find(trial).value_or(Job{}.promise); }

 private:
  void NoteChangeOf(const Trial& trial);

  Turn& turn_;
  std::map<TrialId, double> promise_;
  std::map<StudyId, Time> computed_;  // of large studies
  std::set<StudyId> stale_;
};

}  // namespace espalier
