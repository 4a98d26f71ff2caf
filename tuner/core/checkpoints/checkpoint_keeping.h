#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "tuner/core/state/study.h"

namespace espalier {

// A trial whose newest checkpoint is on nodes that have gone waits for them for as long as it would
// take to train again what is lost without them, and no longer than this.
inline constexpr double kHolderPatience_s = 600;
inline constexpr double kHolderPatienceLeast_s = 1;
inline constexpr int kCopiesWanted = 2;  // of the newest checkpoint, with the first
// A copy that failed is ordered again after this long, and twice as long each time it fails again.
inline constexpr double kCopyAgain_s = 1;
inline constexpr double kCopyAgainMost_s = 300;
// A clone whose parent's checkpoint could not be copied so often, one time after another, fails.
inline constexpr int kMostCloneTries = 8;
// A start that failed because no node could provide the trial's newest checkpoint is tried again in
// the same way, for kHolderPatience_s.
inline constexpr double kStartAgain_s = 1;
inline constexpr double kStartAgainMost_s = 60;

// What is under way to keep checkpoints in reach. Not durable: which nodes have which checkpoint is
// (Trial::copies), and what was under way is ordered again after a restart.
struct CheckpointKeeping {
  struct Order {
    NodeId to;
    CheckpointLabel what;
  };
  struct Setback {
    int times = 0;
    std::optional<Time> again;  // none: it is being tried
  };
  // How long a trial that could start has waited for its checkpoint.
  struct Wait {
    Time since;                 // later by the time without a connected node
    std::optional<Time> alone;  // since then no node is connected
    std::optional<Time> look;   // next; none: when nodes come
    bool said = false;          // in the study's record
  };

  // A trial's starts that failed for want of its checkpoint, though nodes that should have it are
  // connected.
  struct Unfetched {
    Time since;
    int times = 0;
    std::optional<Time> again;  // none: it may start
    std::string why;
  };

  std::map<TrialId, Order> under_way;
  std::map<TrialId, Setback> setbacks;
  std::map<TrialId, Wait> waits;
  std::map<TrialId, Unfetched> unfetched;
  std::map<TrialId, TrialId> clones;  // that have no checkpoint yet, and whose they begin with
  std::set<TrialId> due;              // to be looked at in this step

  void Forget(TrialId trial);
  // The node knows of no order any more.
  void ForgetOrdersTo(NodeId node);
  void FailedOnce(TrialId trial, Time now);
  // The trial's start has failed, for that reason.
  void NotFetched(TrialId trial, Time now, std::string why);
  // Something about the checkpoints of the trial has changed.
  void LookAfterClonesOf(TrialId parent);
  bool HasClonesThatWait(TrialId parent) const;
  // Whether the trial must not be started for now.
  bool Holds(TrialId trial) const;
  // Moves what is due by now to `due`; true: a trial may start that was held back. The next moment
  // that something will be due.
  bool FindDue(Time now);
  std::optional<Time> Next() const;
};

}  // namespace espalier
