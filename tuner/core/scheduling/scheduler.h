#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/pool/share_account.h"
#include "allocator/pool/study_shares.h"
#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/client_slots/client_slot_desk.h"
#include "tuner/core/estimates/compared_curves.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/estimates/speeds.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/scheduling/planner.h"
#include "tuner/core/scheduling/pool_view.h"
#include "tuner/core/scheduling/reconciler.h"
#include "tuner/core/scheduling/study_wait.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/studies/studies.h"
#include "tuner/core/trials/limits.h"
#include "tuner/core/trials/draws.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// Which trials exist, and which of them get which slots: draws trials where slots are or could be
// free for them, has a plan made, and carries out what of it still holds. One owner.
class Scheduler {
 public:
  // What it works with; all outlive it.
  struct Parts {
    const CoreOptions& options;
    PoolState& pool;
    PluginsOfStudies& plugins;
    Draws& draws;
    CurvesOfStudies& curves;
    Speeds& speeds;
    Promises& promises;
    const Joins& joins;
    Limits& limits;
    Trials& trials;
    Studies& studies;
    const Checkpoints& checkpoints;
    const CheckpointCopies& copies;
    ClientSlotDesk& client_slots;
    PoolView& view;
    Reconciler& reconciler;
  };
  Scheduler(Turn& turn, const Parts& parts);

  void On(const SetPoolPolicy& event);
  void On(const PlanMade& event);  // planning.cc, as what makes plans aside
  void On(const Tick& event);

  // ---- phases of a step
  // Looks at the pool if something has happened that it should see, or is due to.
  void Settle();
  // Why no trial of the study runs though it could have one, where studies take turns.
  std::optional<StudyWait> WaitOf(const Study& study) const;
  // When to look again if nothing happens until then: a resize may have become worth its cost.
  std::optional<Time> Next() const;

 private:
  void Schedule();
  void CarryOut();
  void StartSuccessors();
  void StartAgainWhoCannotFillUp();
  PluginSpec CurrentPolicy() const;
  void CreateTrials(const Study& study, int& room);
  void UpdatePromise(const Study& study);
  StudyCurves CurvesToForecast(const Study& study);
  void TakeAllocation(const AllocationDecision& decision);
  bool WithinReach(const AllocationDecision& decision);
  // In `decisions` with the same value to the pool, trials start where their checkpoints lie.
  std::vector<AllocationDecision> HoldersFirst(std::vector<AllocationDecision> decisions) const;

  // Studies that share the pool (shares.cc).
  void CreateTrialsWhereUseful(const std::map<StudyId, StudyPart>& parts);
  void GiveWayToStarving(const std::map<StudyId, StudyPart>& parts);
  bool EndedTrialsAreLeaving() const;
  std::map<StudyId, StudyPart> PartsOfStudies();
  const std::map<StudyId, StudyPart>* KnownParts() const;
  bool TakesTurns() const;
  void CountShares();
  void CountTime();
  bool SetMisfitsAside(std::map<StudyId, StudyUse>& uses);
  void DescribeSharing(PlanRequest& request);
  bool Starves(const Study& study, const StudyPart& part) const;

  // Plans made beside the owner's thread (planning.cc).
  void AskForPlan();
  bool TakePlan(const Plan& plan, const PlanRequest& request);
  bool StillMeant(const AllocationDecision& decision, const std::map<TrialId, const Job*>& shown);
  std::vector<AllocationDecision> WithoutVainMoves(std::vector<AllocationDecision> decisions) const;
  std::vector<AllocationDecision> ThatFit(std::vector<AllocationDecision> decisions) const;

  Turn& turn_;
  const CoreOptions& options_;
  PoolState& pool_;
  PluginsOfStudies& plugins_;
  Draws& draws_;
  CurvesOfStudies& curves_;
  Speeds& speeds_;
  Promises& promises_;
  const Joins& joins_;
  Limits& limits_;
  Trials& trials_;
  Studies& studies_;
  const Checkpoints& checkpoints_;
  const CheckpointCopies& copies_;
  ClientSlotDesk& client_slots_;
  PoolView& view_;
  Reconciler& reconciler_;

  Planner planner_;  // of plans that are made within a step
  // And of others: the one under way, if there is one, and when the next may be asked for.
  std::shared_ptr<const PlanRequest> planning_;
  std::int64_t plans_asked_ = 0;
  Time plan_asked_at_;
  Time planner_rests_until_;
  bool look_ = false;                   // something has changed that a plan should see
  std::map<StudyId, StudyPart> parts_;  // by the newest plan
  ShareAccount account_;                // of studies, where there are several
  // Studies for whose next trial there are slots enough, but perhaps not where it could have them.
  struct Misfit {
    Time since;  // from when they are free
    Time until;  // others go first
    double aside_s = 0;

    Time Due() const;  // when it is set aside, or may try again
  };
  std::map<StudyId, Misfit> misfits_;
  Time scheduled_at_;  // when it looked last
  Time reconciled_all_at_;
  double look_again_s_;
};

}  // namespace espalier
