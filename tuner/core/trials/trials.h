#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "tuner/core/estimates/compared_curves.h"
#include "tuner/core/estimates/promises.h"
#include "tuner/core/groups/groups.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/rank_reports.h"
#include "tuner/core/trials/study_plugins.h"

namespace espalier {

// Trials of the pool: how they take values, are judged by their pruner, pause and end, and how a
// study ends with its trials. One owner.
class Trials {
 public:
  Trials(Turn& turn, PoolState& pool, Groups& groups, const RankReports& ranks,
         PluginsOfStudies& plugins, CurvesOfStudies& curves, const Promises& promises)
      : turn_(turn),
        pool_(pool),
        groups_(groups),
        ranks_(ranks),
        plugins_(plugins),
        curves_(curves),
        promises_(promises) {}

  void Observe(const Change& change);

  // Ends a trial that has not ended, and sees its replicas off.
  void EndTrial(TrialId id, TrialState state, std::string reason, std::optional<double> value,
                const std::string& last_output = {}, bool cancelled = false);
  // Ends a trial whose program came to its own end, perhaps with a value.
  void EndWell(TrialId id, std::optional<double> value, const std::string& last_output);
  // Takes the trial's slots away; where its program takes checkpoints, after one more.
  void PauseTrial(TrialId id, const std::string& reason,
                  const std::optional<AllocationFigures>& figures = std::nullopt);
  // Pauses a trial that cannot go on with the replicas that it has, as `what` says, so that it
  // starts again from its checkpoint; fails it when it has been restarted as often as it may be.
  void StartAgain(TrialId id, const std::string& what);
  // The trial has no replicas any more, and goes on later.
  void BecomePaused(TrialId id, const std::string& reason);
  // Takes a reported value, and judges the trial by it.
  void TakeValue(TrialId id, IntermediateValue value, std::map<std::string, double> extra = {});
  // Takes a value with which the trial is COMPLETE: its pruner is not asked any more.
  void TakeFinalValue(TrialId id, const IntermediateValue& value,
                      std::map<std::string, double> extra = {});
  // Ends a running study, and its trials of the pool with it.
  void EndStudy(StudyId id, StudyState state, const std::string& reason);
  // The same for a study that has reached its own end: FAILED if all of its trials failed, or none
  // that the pool ran has told a number, else COMPLETE with this reason.
  void ConcludeStudy(StudyId id, const std::string& reason);

  // Whether a program runs the trial that is not elastic, as far as is known.
  bool IsOfPlainProgram(TrialId id) const;
  // Whether its program takes checkpoints when it is told to pause, so that it loses nothing by it.
  bool MayPause(TrialId id) const;
  // Whether a plain program runs it that saves in its folder when it is to end, and goes on from
  // there: it has asked whether to save since it was started, or its study says so.
  bool SavesWhenAsked(TrialId id) const;
  // Whether its process is to end so that the trial goes on elsewhere or later.
  bool IsSeenOff(TrialId id) const;

  // ---- trials that are held back: paused by their pruner, which does not let them go on yet, kept
  // waiting by their client, or members of a population while others that wait are behind them
  bool Held(TrialId id) const {
    return HeldByPruner(id) || HeldByClient(id) || held_for_others_.contains(id);
  }
  bool HeldByPruner(TrialId id) const { return held_by_pruner_.contains(id); }
  bool HeldByClient(TrialId id) const { return held_by_client_.contains(id); }
  // Asks the study's pruner, and looks at what its clients say.
  void UpdateHeld(const Study& study);
  // Ends those of the study that its pruner holds back: nothing will change for them.
  void EndUnpromoted(StudyId id);

 private:
  std::optional<TrainingFigures> FiguresOf(TrialId id) const;
  void RecordFigures(TrialId id, const std::optional<TrainingFigures>& figures);
  // False: it is known already, or the study has ended, perhaps with it.
  bool RecordValue(TrialId id, IntermediateValue value, std::map<std::string, double> extra);
  void JudgeTrial(TrialId id);
  // By its newest value; where that brought several points, by the first that does not keep it.
  PruneVerdict JudgeNewest(const Trial& trial);
  int ConsecutiveFailures(const Study& study) const;
  void AskPruner(const Study& study);
  void AskClients(const Study& study);
  void AskPopulation(const Study& study);

  Turn& turn_;
  PoolState& pool_;
  Groups& groups_;
  const RankReports& ranks_;
  PluginsOfStudies& plugins_;
  CurvesOfStudies& curves_;
  const Promises& promises_;
  // All follow from what is durable, so that they are the same after a restart. A trial may be in
  // several, and goes on when it is in none.
  std::set<TrialId> held_by_pruner_;
  std::set<TrialId> held_by_client_;
  std::set<TrialId> held_for_others_;
};

}  // namespace espalier
