#pragma once

#include <cstddef>
#include <stop_token>

#include "base/random.h"
#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/before_trials.h"
#include "tuner/core/samplers/gp/gp_space.h"
#include "tuner/core/samplers/gp/trials.h"

namespace espalier::samplers::gp {

struct ModelSettings {
  bool deterministic = false;  // the noise is kLeastNoise, and not only where that tells more
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
//
// `before` is what another study's trials tell, by objective: a process of them is what the
// trials' values are expected to be, but for an offset and a factor, and the model is of what these
// differ by (Golovin et al. 2017, "Google Vizier", section 3.3). The factor is that of least
// squares with a weight on 1, and not below 0. It is for a study's first trials: later on its own
// tell more, and what is expected holds the search where the other study was good.
Model ModelOf(const GpTrials& trials, const GpSpace& space, const ModelSettings& settings,
              Random& random, const std::stop_token& stop, const BeforeTrials* before = nullptr);

// Where no trial of the study has a value: its values are expected to be those of the other, and at
// the `failed` points as bad as the worst of these.
Model ModelInPlace(const BeforeTrials& before, const Points& failed, const Points& running,
                   const GpSpace& space, const ModelSettings& settings, Random& random,
                   const std::stop_token& stop);

}  // namespace espalier::samplers::gp
