#include "tests/allocator/pollux_objective.h"

#include <map>

namespace espalier {

namespace {

constexpr double kPolluxFloor = 1e-3;

}  // namespace

PolluxObjective::PolluxObjective(const Board& board, const Pool& pool) : terms_(pool, {}) {
  std::map<const Job*, std::size_t> index;
  for (std::size_t i = 0; i < pool.jobs.size(); ++i) index[&pool.jobs[i]] = i;
  for (std::size_t j = 0; j < board.size(); ++j) job_of_.push_back(index.at(board.holder(j).job));
}

double PolluxObjective::Value(std::size_t holder, const Shape& shape, Move move) {
  const std::size_t job = job_of_[holder];
  const double speedup = terms_.Speedup(job, shape.nodes, shape.slots) * terms_.Scale();
  return -1 / (speedup * (move == Move::kStay ? 1.0 : terms_.RestartFactor(job)) + kPolluxFloor);
}

}  // namespace espalier
