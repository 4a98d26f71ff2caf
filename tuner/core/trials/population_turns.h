#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "tuner/core/pool/pool_state.h"
#include "tuner/core/state/change.h"
#include "tuner/core/state/curve.h"
#include "tuner/core/trials/study_plugins.h"

namespace espalier {

// How far a member of a population has come by the curves of its study, as they are compared; a
// clone that has no point yet, as far as its parent had when it was made.
std::int64_t StepOfMember(const TunerState& state, std::span<const Curve> curves,
                          const Trial& trial);

// How many of the first members are yet to be drawn; fewer than are missing, if there is nothing
// left to draw.
std::int64_t YetToBeDrawn(const Study& study, PluginsOfStudies& plugins);

// How many members of the study's population have no slots, or are yet to be drawn, by the multiple
// of the interval up to which they have been compared.
std::map<std::int64_t, std::int64_t> WaitingMembers(const TunerState& state,
                                                    std::span<const Curve> curves,
                                                    const PoolState& pool, const Study& study,
                                                    PluginsOfStudies& plugins);

}  // namespace espalier
