#pragma once

#include <cstddef>
#include <vector>

#include "allocator/allocation/objective.h"
#include "allocator/policies/yardsticks/pollux_fitness.h"

namespace espalier {

// Pollux's fitness as a sum: the power mean with exponent -1 of u + 1e-3 is greatest where the sum
// of -1 / (u + 1e-3) is, u being the scaled speedup. Keeps a pointer to the pool.
class PolluxObjective : public Objective {
 public:
  PolluxObjective(const Board& board, const Pool& pool);
  double Value(std::size_t holder, const Shape& shape, Move move) override;
  bool MayPause() const override { return true; }

 private:
  PolluxObjectives terms_;
  std::vector<std::size_t> job_of_;  // by holder, its index in the pool
};

}  // namespace espalier
