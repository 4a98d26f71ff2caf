#pragma once

#include <cstddef>

namespace espalier::samplers {

// The innermost loops of the Parzen estimator, over terms that lie four kernels side by side. The
// order of all operations is fixed, so results are the same however a compiler makes use of wider
// registers.
inline constexpr std::size_t kKernelsAbreast = 4;

// The places of kernels that are abreast, along one axis: first of all four, then what the distance
// of each is to be multiplied with.
struct KernelBlock {
  double at[kKernelsAbreast];
  double scale[kKernelsAbreast];
};

// From each term, the squares of its kernel's scaled distances to a point with these coordinates,
// on each of `axes` axes. There are `axes` blocks for each four terms.
void SubtractSquares(const KernelBlock* blocks, std::size_t axes, const double* point,
                     std::size_t terms, double* term);

double LargestTerm(const double* term, std::size_t terms);  // requires four at least

// What a term may be below the largest to be nothing beside it, however many there are and
// whatever they weigh: e^-50 is 2 10^-22.
inline constexpr double kNegligibleTerm = 50;

// The sum of weight e^(term - largest), to about 1 part in 10^15. Four that are negligible may be
// left out.
double WeightedSum(const double* term, const double* weight, double largest, std::size_t terms);

}  // namespace espalier::samplers
