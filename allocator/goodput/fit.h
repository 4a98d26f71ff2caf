#pragma once

#include <optional>

#include "allocator/goodput/profile.h"
#include "allocator/goodput/throughput_model.h"

namespace espalier {

// Fits the throughput model to measured step times. It minimises the sum of the root mean square
// errors of the logarithms of both times, with a pull of gamma to 1 and of the betas below their
// alphas; what the profile cannot tell is held fixed (Pollux, section 4.1; the constants are those
// of AdaptDL). More replicas than were ever tried are thus predicted to scale well, which invites
// trying them; the policies bound how far.
//
// `warm_start` is an earlier fit of the same trial; the better of the fits from there and from the
// standard start is returned. Without any observation the result is `warm_start`, or the default.
// Takes well below a millisecond for a handful of shapes.
ThroughputParams Fit(const Profile& profile,
                     const std::optional<ThroughputParams>& warm_start = std::nullopt);

// The objective that Fit minimises. For tests and for judging how well a model explains a profile.
double FitObjective(const Profile& profile, const ThroughputParams& params);

}  // namespace espalier
