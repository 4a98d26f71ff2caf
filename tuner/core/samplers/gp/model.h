#pragma once

#include <cstddef>
#include <stop_token>

#include "base/random.h"
#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/gp_space.h"
#include "tuner/core/samplers/gp/trials.h"

namespace espalier::samplers::gp {

struct ModelSettings {
  bool deterministic = false;  // the noise is kLeastNoise
  std::size_t most_known = 1;  // points that are known to be good, of several objectives
};

// What a sampler makes of trials.
struct Model {
  Acquisition acquisition;
  Points known;  // good ones, where a search may begin
};

// Fits a process to each objective and to each constraint. One objective is improved on as
// expected; of several, the hypervolume above the reference point. Running trials are taken as
// ended with values drawn from the model, and what a candidate brings is what it adds to them. Once
// `stop` is asked for, anything.
Model ModelOf(const GpTrials& trials, const GpSpace& space, const ModelSettings& settings,
              Random& random, const std::stop_token& stop);

}  // namespace espalier::samplers::gp
