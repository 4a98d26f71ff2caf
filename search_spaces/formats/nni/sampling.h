#pragma once

#include "search_spaces/formats/nni/numpy_generator.h"
#include "search_spaces/search_space.h"

namespace espalier {

// Draws what NNI's Random tuner draws next with this generator, before it replaces repetitions in
// finite spaces by a grid's points: in the space's order, each value made from numpy's draws as NNI
// makes it. Values are NNI's except for the last digits of logarithmic and normal kinds (see
// NumpyGenerator and portable_math.h; NNI's own come from its machine's C library). Fails where NNI
// fails: on a randint of more than 2^63 integers, and on an infinite value.
absl::StatusOr<Parameters> SampleAsNni(const SearchSpace& space, NumpyGenerator& generator);

}  // namespace espalier
