#include "tuner/core/trials/clone.h"

#include <utility>

namespace espalier {

TrialId EmitClone(Turn& turn, const Trial& parent, Parameters parameters) {
  const Study& study = turn.StudyAt(parent.study);
  const TrialId id(turn.state().last_trial.value + 1);
  turn.Emit(TrialCreated{.id = id,
                         .study = study.id,
                         .number = std::ssize(study.trials),
                         .parameters = std::move(parameters),
                         .at = turn.now()});
  const std::int64_t founder = parent.lineage->cloned() ? parent.lineage->founder : parent.number;
  turn.Emit(TrialCloned{id, {.parent = parent.number, .founder = founder}});
  if (!parent.environment.empty()) turn.Emit(TrialEnvironmentSet{id, parent.environment});
  turn.Wake();
  return id;
}

}  // namespace espalier
