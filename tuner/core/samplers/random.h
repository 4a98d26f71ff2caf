#pragma once

#include "tuner/core/samplers/configurations.h"
#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// A draw from the space. Where it is finite, one that was not tried before: first by the space's
// own probabilities, and when those keep hitting what was tried, evenly among the rest. `tried` is
// null for a space that is not finite, and must not be exhausted.
Parameters DrawNew(const SearchSpace& space, const TriedConfigurations* tried, Random& random);

}  // namespace espalier::samplers
