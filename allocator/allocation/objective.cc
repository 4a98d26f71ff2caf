#include "allocator/allocation/objective.h"

#include <algorithm>

namespace espalier {

namespace {

// A job that pauses for long is not moved again soon: a move lasts at least so many times its
// pause.
constexpr double kPausesWorth = 15;
constexpr double kPreference = 1e-4;  // of a unit of speedup: decides between equals
// No pause is taken to be shorter, so that nothing moves for nothing.
constexpr double kLeastPauseS = 1e-3;

}  // namespace

Shape ShapeOf(const Board& board, const Shares& shares) {
  return {.nodes = static_cast<int>(shares.size()),
          .slots = TotalSlots(shares),
          .type = std::max(0, board.type_of(shares)),
          .spot = std::any_of(shares.begin(), shares.end(), [&board](const Share& s) {
            return board.spot(static_cast<std::size_t>(s.node));
          })};
}

PromiseObjective::PromiseObjective(Board& board, const PromiseObjectiveOptions& options)
    : board_(&board), options_(options) {
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Shares& held = board.HeldAtFirst(j);
    Present present;
    present.weight = board.holder(j).weight;
    present_.push_back(present);
    if (held.empty()) continue;
    present_.back().slots = TotalSlots(held);
    present_.back().speedup = board.SpeedupWith(j, held);
    present_.back().gross = Gross(j, present_.back().speedup);
  }
}

double PromiseObjective::Gross(std::size_t holder, double speedup) const {
  const Job& job = *board_->holder(holder).job;
  double worth = present_[holder].weight * speedup;
  if (job.time_left_s > 0 && job.work_left_s > 0) {
    worth *= std::min(1.0, job.time_left_s * speedup / job.work_left_s);
  }
  return worth;
}

double PromiseObjective::Value(std::size_t holder, const Shape& shape, Move move) {
  const int slots = shape.slots;
  if (slots == 0) return 0;
  const double speedup = board_->SpeedupIn(holder, shape.nodes, slots, shape.type);
  const Present& present = present_[holder];
  const Job& job = *board_->holder(holder).job;
  double worth = Gross(holder, speedup);
  if (worth < present.gross) worth -= options_.hysteresis * (present.gross - worth);
  if (move != Move::kStay && present.slots > 0) {
    double horizon_s = std::max(options_.horizon_s, kPausesWorth * job.resize_cost_s);
    if (job.work_left_s > 0) {
      horizon_s = std::min(horizon_s, job.work_left_s / std::max(1e-9, speedup));
    }
    // Joining the new nodes first and leaving the old ones then are two pauses.
    const double pauses = move == Move::kRelocate ? 2 : 1;
    const double lost =
        pauses * std::max(kLeastPauseS, job.resize_cost_s) / std::max(1e-9, horizon_s);
    worth -= Gross(holder, std::max(speedup, present.speedup)) * std::min(1.0, lost);
  }
  if (shape.nodes > 1) worth -= kPreference * present.weight;
  if (shape.spot) worth -= kPreference * present.weight * (shape.nodes > 1 ? 2 : 1);
  const int kept = std::min(slots, present.slots);
  return worth - present.weight * options_.min_gain * (0.5 * kept + (slots - kept));
}

}  // namespace espalier
