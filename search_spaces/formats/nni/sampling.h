#pragma once

#include "search_spaces/formats/nni/numpy_generator.h"
#include "search_spaces/search_space.h"

namespace espalier {

// What NNI's Random tuner draws next with this generator, before it replaces repetitions in finite
// spaces by a grid's points: the draws in the space's order, each as NNI makes it of numpy's.
// Values are NNI's but for the last digits of logarithmic and normal kinds (see NumpyGenerator and
// portable_math.h; NNI's own come from its machine's C library).
// An error where NNI fails: a randint of more than 2^63 integers, an infinite value.
absl::StatusOr<Parameters> SampleAsNni(const SearchSpace& space, NumpyGenerator& generator);

}  // namespace espalier
