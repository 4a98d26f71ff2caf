#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/pool/pool.h"
#include "allocator/pool/share_account.h"
#include "allocator/pool/study_shares.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/client_slots/client_slot_desk.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/estimates/speeds.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/scheduling/plan.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/studies/populations.h"
#include "tuner/core/trials/limits.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// The pool as policies and the rule of its size are shown it: nodes with what may be given out
// there, and a job for each trial that may have slots.
class PoolView {
 public:
  PoolView(Turn& turn, const PoolState& pool, const Joins& joins, Speeds& speeds,
           const Promises& promises, PluginsOfStudies& plugins, const Limits& limits,
           const Trials& trials, const Checkpoints& checkpoints, const Populations& populations,
           const ClientSlotDesk& client_slots)
      : turn_(turn),
        pool_(pool),
        joins_(joins),
        speeds_(speeds),
        promises_(promises),
        plugins_(plugins),
        limits_(limits),
        trials_(trials),
        checkpoints_(checkpoints),
        populations_(populations),
        client_slots_(client_slots) {}

  Pool MakePool();
  // What policies would see if the pool had at most so many slots, as it may come to have. Trials
  // that wait for a node that sees their checkpoint are among the jobs: one may come.
  Pool MakePoolToCome(int most_slots);
  // What may be given out on each node.
  std::vector<NodeCapacity> Capacities() const;
  // The trial keeps what it has, since the allocator cannot work with its numbers: once a trial
  // that goes on record.
  void RecordRefusal(const Trial& trial, const std::string& reason);

  // ---- studies that share the pool
  // Configurations that the study may still draw, as far as is known.
  StudyDemand DemandOf(const Study& study, int most_slots);
  // Fills in what is divided among the studies, where there are several.
  void DescribeSharing(PlanRequest& request);
  // Slots without which the study's live trials cannot run.
  int LeastSlotsOf(const Study& study) const;
  // Slots that those of its trials that run have at the least.
  int RunningSlotsOf(const Study& study) const;
  int PlannedSlotsOf(const Study& study) const;
  // Slots that each trial has or is to have, and those that processes of ended ones still hold.
  std::map<TrialId, int> SlotsTaken() const;
  // What each study has of the pool now, and whether it wants more.
  std::map<StudyId, StudyUse> UsesOfStudies() const;
  // Seconds for which one trial of the study holds its slots, by those that have ended.
  std::optional<double> TrialSeconds(const Study& study) const;
  // Whether a trial of it could start.
  bool SomeWait(const Study& study) const;

 private:
  // What no trial can have more of, in the pool as it is shown. Looked up once for all of them.
  struct JobLimits {
    int most_slots = 0;
    std::optional<int> most_on_gpus_of_its_own{};  // none: all
  };

  Pool MakePool(int most_slots, bool with_waiting);
  Job MakeJob(const Study& study, const Trial& trial, const JobLimits& limits);
  void DescribeSizes(const Study& study, const Trial& trial, const JobLimits& limits, Job& job);
  void DescribeHistory(const Trial& trial, Job& job) const;
  bool NeedsOneNode(const Study& study) const;
  std::optional<int> MostOnGpusOfItsOwn(int most_slots) const;
  double ShareDoneBy(const Trial& trial) const;
  bool MayDrawMore(const Study& study, std::int64_t alive) const;
  void OrderByShare(Pool& pool) const;

  Turn& turn_;
  const PoolState& pool_;
  const Joins& joins_;
  Speeds& speeds_;
  const Promises& promises_;
  PluginsOfStudies& plugins_;
  const Limits& limits_;
  const Trials& trials_;
  const Checkpoints& checkpoints_;
  const Populations& populations_;
  const ClientSlotDesk& client_slots_;
};

}  // namespace espalier
