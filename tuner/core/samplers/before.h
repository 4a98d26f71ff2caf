#pragma once

#include <cstdint>
#include <vector>

#include "tuner/core/samplers/sampler.h"

namespace espalier::samplers {

// The parameters of another study's trials (SamplerInput::before) in the space of this one, in its
// order. What a trial lacks is drawn, alike whenever it is asked for, so that trials say nothing of
// such a parameter.
std::vector<Parameters> CompletedBefore(const SamplerInput& input);

// By dimension of the space: whether any of these trials has such a parameter.
std::vector<bool> SharedDimensions(const SamplerInput& input);

}  // namespace espalier::samplers
