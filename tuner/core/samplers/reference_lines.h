#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/random.h"
#include "tuner/core/fronts/fronts.h"

namespace espalier::samplers {

// How NSGA-III keeps a front spread out: by lines from the best of all objectives through points
// that are spread evenly (Deb & Jain 2014, sections IV B to E).

// Each row is compared with each line.
inline constexpr std::size_t kMostReferencePoints = 2000;

// Das & Dennis: the points of a simplex whose coordinates are whole numbers that add up to
// `divisions`; at most 2,000, with fewer divisions where there would be more.
Losses ReferencePoints(std::size_t objectives, std::size_t divisions);
double ReferencePointCount(std::size_t objectives, std::size_t divisions);

// Rows so that the best of each objective is 0, and the hyperplane through the extremes of all
// objectives meets each axis at 1. Where the extremes make none that meets every axis above 0, the
// worst of each objective is 1. Infinite values count as 3 times the range beyond what is finite.
Losses Normalized(const Losses& losses);

// The line that each row is nearest to, of equals the first.
struct NearestLine {
  std::size_t point;  // that it goes through
  double distance;
};
std::vector<NearestLine> NearestLines(const Losses& normalized, const Losses& points);

// `count` of the rows from `first` on, of which there are more: again and again one of those whose
// line has the fewest rows that are chosen already, rows before `first` among them. Of a line
// that has none the nearest is taken, else any. In the order chosen.
std::vector<std::size_t> ChooseByLines(std::span<const NearestLine> lines, std::size_t first,
                                       std::size_t count, Random& random);

}  // namespace espalier::samplers
