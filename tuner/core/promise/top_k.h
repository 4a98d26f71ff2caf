#pragma once

#include <span>
#include <vector>

#include "tuner/core/promise/forecast.h"

namespace espalier {

// For independent normal costs, the probability of each to be among the k least. A variance of zero
// is a certain value; of equal certain values the earlier one is better. Exact but for the integral
// over the cost, for which the distributions are cut at some hundred points (absolute error below
// about 0.01).
std::vector<double> TopKProbability(std::span<const Forecast> costs, int k);

}  // namespace espalier
