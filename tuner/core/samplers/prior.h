#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tuner/core/samplers/sampler.h"
#include "tuner/core/state/belief.h"

namespace espalier::samplers {

// The sampler with what a person expects, in the manner of PriorBand (Mallik et al. 2023): a trial
// takes the sampler's suggestion, but some parameters of it are drawn around where their best value
// is expected to be, by a chance that fades as trials come, whatever becomes of them. The sampler
// learns from such trials as from any other, so that a prior that is right shows it good trials
// early, and one that is wrong costs a bounded number of trials. The first trial has the expected
// values themselves. What the sampler itself draws is the same bits as without beliefs.
std::shared_ptr<const Sampler> WithPrior(std::shared_ptr<const Sampler> sampler,
                                         std::vector<Belief> beliefs);

// That a trial's parameter is drawn from a prior once so many others have been asked for: (w / (w +
// others))^2 with w = 20 confidence. So no more than 1 + w trials are to be expected in all.
double ChanceOfPrior(double confidence, std::size_t others);

}  // namespace espalier::samplers
