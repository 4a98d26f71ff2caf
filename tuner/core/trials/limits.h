#pragma once

#include <map>
#include <optional>
#include <string>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/study_plugins.h"

namespace espalier {

// The time and money that studies may take: what is left of both, and when it is too late for a new
// trial. One owner.
class Limits {
 public:
  Limits(Turn& turn, const PoolState& pool, PluginsOfStudies& plugins)
      : turn_(turn), pool_(pool), plugins_(plugins) {}

  void Observe(const Change& change);

  // Studies that have used up a limit, each with the reason.
  std::map<StudyId, std::string> Over();
  // When a study may have used up a limit at the earliest.
  std::optional<Time> Next() const;

  // Seconds until the time limit, or until the cost limit with the slots that it holds now;
  // infinity without either.
  double TimeLeft(const Study& study) const;
  // Whether what is left is too little for a trial to come to a result that counts. Where that
  // changes, the study's record says so.
  bool TooLateForNewTrials(const Study& study);

 private:
  // Until then a cost limit cannot be reached, unless the pool has more slots by then.
  struct CostCheck {
    Time at;
    int slots = 0;
  };

  bool OverCost(const Study& study);
  int SlotsHeldByStudy(const Study& study) const;
  // What the fastest trial would need from its start to a result that counts; 0: unknown.
  double SecondsToBeOfUse(const Study& study) const;

  Turn& turn_;
  const PoolState& pool_;
  PluginsOfStudies& plugins_;
  std::map<StudyId, CostCheck> cost_check_;
};

}  // namespace espalier
