#pragma once

#include <memory>

#include "base/plugin.h"
#include "tuner/core/samplers/crossovers.h"
#include "tuner/core/samplers/populations.h"

namespace espalier::samplers {

enum class Mutation { kUniform, kPolynomial };

// How children are made of parents, in any search space (Deb et al. 2002, section III C).
struct Breeding {
  std::size_t population_size;
  Crossover crossover;
  double crossover_probability;  // else a child begins as one parent
  double swapping_probability;   // that it has an option, or with kUniform a number, of its first
                                 // parent
  double mutation_probability;   // of each parameter; 0: one in their number, at most a half
  Mutation mutation;             // of a number: drawn anew, or near what it was
  CrossoverSpread spread{};
  double mutation_eta = 20;  // of kPolynomial: the greater, the nearer
};

// Options that genetic samplers share, and what they come to.
std::vector<PluginOption> BreedingOptions();
absl::StatusOr<Breeding> BreedingOf(const OptionValues& options);

// A child of two parents or three, each the preferred one of two that are drawn. Options of choices
// come from the first parent or the last. Numbers that all parents have are crossed together; where
// the choices of the child bring in parameters that not all have, it takes them as they are from
// the first that does. A child outside the space on a continuous axis is made again, of other
// parents. Parameters that a mutated choice brings in are drawn. Requires as many parents as the
// crossover takes.
Parameters ChildOf(const SamplerInput& input, const Population& parents, const Breeding& breeding,
                   Random& random);

// A sampler that draws at random until there are parents, and then children of theirs: eight at the
// most for one that was not tried. In a finite space an untried one is drawn then, while there are
// any. `work`: of `select`, for each trial with so many objectives (see Sampler::Work).
// `objectives`: the number that it is for; 0: any.
std::unique_ptr<Sampler> MakeGeneticSampler(const Breeding& breeding, Select select,
                                            std::function<double(std::size_t objectives)> work,
                                            std::size_t objectives = 0);

}  // namespace espalier::samplers
