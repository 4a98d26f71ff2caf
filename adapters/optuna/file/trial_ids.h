#pragma once

#include <cstdint>
#include <map>

#include "tuner/core/state/study.h"

namespace espalier {

// Some programs keep trial ids in a study's system attributes: optuna-dashboard in the keys of
// notes and artifacts ("dashboard:17:note_ver", "dashboard:artifacts:17:..."), Optuna's genetic
// samplers in the parents of a generation ("NSGAIISampler:parent:3": "[17, 19]"). Trials that move
// to another database get other ids, and these attributes follow them. What names a trial that did
// not come along stays as it is.
void FollowTrialIds(const std::map<std::int64_t, std::int64_t>& new_ids,
                    std::map<std::string, std::string>& system_attributes);

}  // namespace espalier
