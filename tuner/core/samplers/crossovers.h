#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/random.h"

namespace espalier::samplers {

// How the numbers of a child follow from those of its parents. Of each, 0 to 1 is what the search
// space has; a child may be beyond.
enum class Crossover {
  kUniform,   // each number from either parent (Syswerda 1989)
  kBlxAlpha,  // blend crossover: anywhere between, and as much beyond (Eshelman & Schaffer 1993)
  kSpx,       // simplex crossover of three parents (Tsutsui, Yamamura & Higuchi 1999)
  kSbx,       // simulated binary crossover, within bounds (Deb & Agrawal 1995)
  kVsbx,      // SBX that goes beyond both parents (Ballester & Carter 2003)
  kUndx,      // unimodal normal distribution crossover of three parents (Ono & Kobayashi 1997)
};

// How many parents it takes: two or three.
std::size_t ParentCount(Crossover crossover);

// How far children are from their parents.
struct CrossoverSpread {
  double alpha = 0.5;                          // of kBlxAlpha: how far beyond, in their distance
  std::optional<double> epsilon{};             // of kSpx: of the simplex; sqrt(numbers + 2)
  std::optional<double> eta{};                 // of kSbx and kVsbx: the more, the nearer; 2, or 20
                                               // with several objectives
  double child_gene_probability = 0.5;         // of both: that a number is crossed, not a parent's
  double uniform_crossover_probability = 0.5;  // of both: that two children exchange a number
  double sigma_xi = 0.5;                       // of kUndx: along the line through two parents
  std::optional<double> sigma_eta{};           // of kUndx: across it; 0.35 / sqrt(numbers)
};

// What it takes beside the parents.
struct CrossoverInput {
  Crossover crossover;
  double swapping_probability;  // of kUniform: that a number is the first parent's
  bool several_objectives;
  CrossoverSpread spread{};
};

// The parents have equally many numbers, at least one.
std::vector<double> Cross(const CrossoverInput& input,
                          const std::vector<std::vector<double>>& parents, Random& random);

// Polynomial mutation (Deb et al. 2002; revision 1.1.6 of their program): a number near this one,
// within 0 to 1. The greater eta, the nearer.
double MutatePolynomially(double x, double eta, Random& random);

}  // namespace espalier::samplers
