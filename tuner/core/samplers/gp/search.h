#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "base/random.h"
#include "tuner/core/samplers/gp/acquisition.h"
#include "tuner/core/samplers/gp/gp_space.h"

namespace espalier::samplers::gp {

struct Candidate {
  Point point;  // masked
  double value = 0;
};

// How widely the maximum is sought.
struct SearchSettings {
  std::size_t preliminary = 2048;  // points of a sequence that fills the space
  std::size_t starts = 10;         // local searches
};

// Seeks the maximum of the acquisition function: evaluates it at points that fill the space, and
// searches from the best of them, from some drawn in proportion to what the function's logarithm is
// there, and from `known`, at most `starts` - 1 masked points. Returns what the searches found,
// the best first, and after them the points that fill the space likewise. Once `stop` is asked for,
// anything.
std::vector<Candidate> SearchMaximum(const GpSpace& space, const Acquisition& acquisition,
                                     const Points& known, const SearchSettings& settings,
                                     Random& random, const std::stop_token& stop);

}  // namespace espalier::samplers::gp
