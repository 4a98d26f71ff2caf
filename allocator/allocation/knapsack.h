#pragma once

#include <optional>
#include <span>
#include <vector>

namespace espalier {

// One way to serve an item of a multiple-choice knapsack.
struct KnapsackChoice {
  int slots = 0;
  double value = 0;
};

// Returns the choice for each item, as its index there, for which the sum of values is greatest
// while the slots sum up to at most `capacity`. Each item's choices are in ascending order of
// slots, at least one. None if even the smallest choices do not fit. It works by dynamic
// programming, and so exactly, where that takes at most `kKnapsackSteps` steps; else by a price per
// slot (a Lagrange multiplier), which is exact on the choices' concave hull, with what is left over
// given out by greatest gain per slot: this falls short of the optimum by less than one choice's
// gain. Among equally good solutions it takes the one with fewer slots for earlier items.
inline constexpr double kKnapsackSteps = 2e6;
std::optional<std::vector<int>> SolveKnapsack(std::span<const std::vector<KnapsackChoice>> items,
                                              int capacity);

}  // namespace espalier
