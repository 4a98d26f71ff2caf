#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace espalier {

// A candidate as a row of small counts, whose meaning the problem knows.
using Genome = std::vector<std::uint16_t>;
using Costs = std::array<double, 2>;  // two objectives, less is better

// What a genetic search is about. All genomes of a problem have one length.
class GeneticProblem {
 public:
  virtual ~GeneticProblem() = default;
  virtual void Cross(Genome& a, Genome& b, Random& random) = 0;
  virtual void Mutate(Genome& genome, Random& random) = 0;
  // Makes it a legal candidate.
  virtual void Repair(Genome& genome, Random& random) = 0;
  virtual Costs Evaluate(const Genome& genome) = 0;
};

struct Candidate {
  Genome genome{};
  Costs costs{};
  int rank = 0;         // of its front; 0: no candidate is better in both objectives
  double crowding = 0;  // how far its neighbours in the front are; more is lonelier
};

struct Nsga2Options {
  int population = 100;
  int generations = 100;  // the first population is one of them
};

// NSGA-II for two objectives (Deb et al., 2002), in the details as pymoo 0.4.2 does it, since that
// is what Pollux's artifact runs: binary tournaments by domination, then crowding; nine of ten
// couples cross; no genome is taken twice; the best fronts survive, the last of them by crowding.
// Starts from `first` (at least one genome, repaired here). Returns the last population, best front
// first.
std::vector<Candidate> Nsga2(GeneticProblem& problem, const std::vector<Genome>& first,
                             const Nsga2Options& options, Random& random);

// Sets rank and crowding of each, and keeps the best `most` in order of rank. In the last front
// that is kept in part the loneliest stay.
void Survive(std::vector<Candidate>& candidates, std::size_t most);

}  // namespace espalier
