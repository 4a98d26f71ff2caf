#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "allocator/goodput/fit.h"
#include "allocator/goodput/goodput.h"
#include "allocator/goodput/profile.h"
#include "allocator/pool/pool.h"
#include "tuner/core/pool/group.h"
#include "tuner/core/state/change.h"

namespace espalier {

// Step times of a trial on one GPU type that are to be explained anew.
struct SpeedToFit {
  TrialId trial;
  std::string gpu_type;
  Profile profile;
  std::optional<ThroughputParams> warm_start;
};

struct FittedSpeed {
  TrialId trial;
  std::string gpu_type;
  ThroughputParams params;
};

// How fast trials are on slots of each GPU type, and what it costs to resize them, as their
// replicas have told. Not durable but for the resizes; outlives the replicas, so that a paused
// trial comes back with it, and is forgotten with the trial's end or its study. Of plain programs
// that are resized by restarts, the values tell how fast they are. One owner.
class Speeds {
 public:
  // `fit_aside`: a planner fits speeds beside the owner's thread (TakeDue, TakeFitted), where
  // otherwise Learn does.
  Speeds(const TunerState& state, bool fit_aside) : state_(state), fit_aside_(fit_aside) {}

  // What the resizes of a loaded trial have cost.
  void TakeUp(const Trial& trial);
  void Observe(const Change& change);

  // What the trial's group tells of its steps on slots of this type. True: that changed what is
  // known of its speed.
  bool Learn(TrialId id, const std::string& gpu_type, const Group& group,
             const ReplicaProgress& progress);

  // Speeds to be fitted, each once.
  std::vector<SpeedToFit> TakeDue();
  // Changes nothing where the trial has ended meanwhile.
  void TakeFitted(const FittedSpeed& fitted);

  // None: not known yet.
  std::optional<ThroughputParams> FittedFor(TrialId id, const std::string& gpu_type) const;

  // Gives the job its model on the type that the trial trains on, or did last, and those on other
  // types beside it. Not OK: the numbers of one of them are unusable, and it is left out.
  absl::Status Describe(TrialId id, Job& job) const;

  // Mean seconds that a resize of the trial took; until it has had one, of the study's other
  // trials. None: neither had one.
  std::optional<double> ResizeCost_s(const Trial& trial) const;

  // True the first time: numbers that are wrong once are so again and again.
  bool NoteRefused(TrialId id) { return refused_.insert(id).second; }

 private:
  struct OnType {
    Profile profile;
    std::optional<ThroughputParams> fitted;
    std::vector<ProfileObservation> fitted_to;  // what `fitted` rests on
    int max_profiled = 1;                       // replicas
  };
  struct Speed {
    std::map<std::string, OnType> by_gpu_type;
    std::string gpu_type;  // on which it trained last
    GradientNoise noise;
    BatchBounds batch;
  };
  struct Pauses {
    double sum_s = 0;
    int count = 0;
    void Add(double pause_s) {
      sum_s += pause_s;
      ++count;
    }
  };

  void LearnFromValue(const ValueReported& told);
  // Has the speed fitted if its times are other ones than those of the last fit. False: they are
  // not.
  bool FitIfNew(TrialId id, const std::string& gpu_type, OnType& on_type);
  void Forget(TrialId id);
  void ForgetStudy(StudyId id);

  const TunerState& state_;
  bool fit_aside_;
  std::map<TrialId, Speed> speeds_;
  std::set<std::pair<TrialId, std::string>> fit_due_;  // by GPU type
  std::set<TrialId> refused_;                          // trials with bad numbers on record
  std::map<StudyId, Pauses> pauses_;                   // of all resizes of its trials
};

}  // namespace espalier
