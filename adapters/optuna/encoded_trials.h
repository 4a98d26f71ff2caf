#pragma once

#include <cstddef>
#include <map>

#include "grpcpp/grpcpp.h"
#include "tuner/core/state/change.h"

namespace espalier::optuna_storage {

inline constexpr std::size_t kTrialsInSlice = 2000;  // read between two commits, at most

// Trials as bytes of a GetTrialsReply. A trial that has ended never changes, so its bytes are kept
// and shared by all answers: each new client loads all of them. Of one thread.
class EncodedTrials {
 public:
  // One element of the repeated field `trials`, with its tag and length.
  grpc::Slice Encode(const Trial& trial, const Study& study);

  // Drops what belongs to studies that are gone.
  void KeepOnly(const TunerState& state);

 private:
  std::map<StudyId, std::map<TrialId, grpc::Slice>> ended_;
};

}  // namespace espalier::optuna_storage
