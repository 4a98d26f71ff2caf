#pragma once

#include "tuner/core/checkpoints/checkpoints.h"
#include "tuner/core/groups/joins.h"
#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/turn.h"
#include "tuner/core/trials/limits.h"
#include "tuner/core/trials/study_plugins.h"
#include "tuner/core/trials/trials.h"

namespace espalier {

// What clients ask of studies, and how studies come to their end. Answers are replies: what is
// refused is the reply's status. One owner.
class Studies {
 public:
  Studies(Turn& turn, PoolState& pool, const CoreOptions& options, PluginsOfStudies& plugins,
          Joins& joins, Limits& limits, Trials& trials, Checkpoints& checkpoints)
      : turn_(turn),
        pool_(pool),
        options_(options),
        plugins_(plugins),
        joins_(joins),
        limits_(limits),
        trials_(trials),
        checkpoints_(checkpoints) {}

  void Create(const CreateStudy& event);
  void On(const StopStudy& event);
  // Stops a study that runs; `tuner resume` starts it again. The reason is for people.
  void StopFor(StudyId id, const std::string& reason);
  void On(const ResumeStudy& event);
  void On(const DeleteStudy& event);
  void On(const RenameStudy& event);
  void On(const SetStudyAttribute& event);
  void On(const PinTrial& event);

  // Once, with the first event: the studies' clocks stood still while there was no service.
  void SetClocksAfterRestart();
  void EndThoseOverLimits();
  // Ends a study whose trials have all ended and which can have no more.
  void EndStudyIfDone(StudyId id);

 private:
  // Whether a trial of the study runs, or waits for nothing but slots.
  bool AnyMayRun(const Study& study) const;
  bool AnyHeldByClient(const Study& study) const;

  Turn& turn_;
  PoolState& pool_;
  const CoreOptions& options_;
  PluginsOfStudies& plugins_;
  Joins& joins_;
  Limits& limits_;
  Trials& trials_;
  Checkpoints& checkpoints_;
};

}  // namespace espalier
