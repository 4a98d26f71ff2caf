#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "allocator/pool/pool.h"

namespace espalier {

// Pollux's measure of an allocation (Qiao et al., OSDI 2021, section 4.1, as its artifact computes
// it: petuum/adaptdl, branch osdi21-artifact, simulator/pollux.py; that differs from the paper in
// that a speedup is relative to the goodput of a fair share of the pool).
struct PolluxFitnessOptions {
  double fairness = -1;         // exponent of the power mean; 0: geometric. Less is fairer
  double restart_delay_s = 30;  // what a restart is taken to cost
};

// The objectives of one pool. Jobs are those of pool.jobs, by their index there. Every slot counts
// alike, whatever its GPU type. Remembers what it has computed: one owner, one thread. Holds a
// pointer to the pool.
class PolluxObjectives {
 public:
  PolluxObjectives(const Pool& pool, const PolluxFitnessOptions& options);

  // The goodput on that shape relative to the goodput of a fair share; 0 for no replicas. A job
  // without a model is taken to scale linearly.
  double Speedup(std::size_t job, int nodes, int replicas);
  // The factor for a job that changes its placement, for the restarts it has had in its age.
  double RestartFactor(std::size_t job) const { return restart_factors_[job]; }
  // A share of the pool as large as a node gives a speedup of one.
  double Scale() const { return scale_; }

  // The power mean of scaled speedups; more is better.
  double Mean(std::span<const double> scaled_speedups) const;

 private:
  struct Table {
    double unit = 0;  // goodput of a speedup of one; 0: linear
    double linear = 1;
    int most = 0;               // replicas in `known`
    std::vector<double> known;  // by replicas on one node, then on several; negative: not computed
  };

  const Pool* pool_;
  PolluxFitnessOptions options_;
  double scale_ = 0;
  std::vector<Table> tables_;
  std::vector<double> restart_factors_;
};

// The fitness of placements, one for each of pool.jobs in that order: the power mean over jobs of
// scaled speedup, with the restart penalty where a placement is not the job's current one. 0 for a
// pool without jobs or slots.
double PolluxFitness(const Pool& pool, const std::vector<Placement>& placements,
                     const PolluxFitnessOptions& options = {});

}  // namespace espalier
