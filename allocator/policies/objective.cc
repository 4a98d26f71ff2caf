#include "allocator/policies/objective.h"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

constexpr double kPolluxFloor = 1e-3;
constexpr double kPolluxRestart_s = 30;

}  // namespace

PromiseObjective::PromiseObjective(Board& board, const PromiseObjectiveOptions& options)
    : board_(&board), options_(options) {
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Shares& held = board.HeldAtFirst(j);
    Present present;
    present.weight = board.seat(j).weight;
    present_.push_back(present);
    if (held.empty()) continue;
    present_.back().slots = TotalSlots(held);
    present_.back().speedup = board.SpeedupWith(j, held);
    present_.back().gross = Gross(j, present_.back().speedup);
  }
}

double PromiseObjective::Gross(std::size_t seat, double speedup) const {
  const Job& job = *board_->seat(seat).job;
  double worth = present_[seat].weight * speedup;
  if (job.time_left_s > 0 && job.work_left_s > 0) {
    worth *= std::min(1.0, job.time_left_s * speedup / job.work_left_s);
  }
  return worth;
}

double PromiseObjective::Value(std::size_t seat, double speedup, int slots, bool moved) const {
  if (slots == 0) return 0;
  const Present& present = present_[seat];
  const Job& job = *board_->seat(seat).job;
  double worth = Gross(seat, speedup);
  if (worth < present.gross) worth -= options_.hysteresis * (present.gross - worth);
  if (moved && present.slots > 0) {
    double horizon_s = options_.horizon_s;
    if (job.work_left_s > 0) {
      horizon_s = std::min(horizon_s, job.work_left_s / std::max(1e-9, speedup));
    }
    const double lost = std::max(0.0, job.resize_cost_s) / std::max(1e-9, horizon_s);
    worth -= Gross(seat, std::max(speedup, present.speedup)) * std::min(1.0, lost);
  }
  const int kept = std::min(slots, present.slots);
  return worth - present.weight * options_.min_gain * (0.5 * kept + (slots - kept));
}

PolluxObjective::PolluxObjective(Board& board) {
  const int capacity = std::max(1, board.total_capacity());
  const int jobs = std::max(1, static_cast<int>(board.size()));
  // The fair share in slots, and the nodes such a slot's share amounts to.
  const int fair_slots = (capacity + jobs - 1) / jobs;
  const auto nodes = static_cast<int>(board.node_count());
  const int fair_nodes = (nodes + capacity - 1) / capacity;
  const double scale = static_cast<double>(nodes) / capacity;
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Job& job = *board.seat(j).job;
    Terms terms;
    const double fair = board.seat(j).speedup->At(fair_nodes, fair_slots);
    terms.unit = fair > 0 ? scale / fair : 0;
    terms.restart =
        std::max(job.age_s - job.resizes * kPolluxRestart_s, 0.0) / (job.age_s + kPolluxRestart_s);
    terms_.push_back(terms);
  }
}

double PolluxObjective::Value(std::size_t seat, double speedup, int /*slots*/, bool moved) const {
  const Terms& terms = terms_[seat];
  return -1 / (speedup * terms.unit * (moved ? terms.restart : 1.0) + kPolluxFloor);
}

}  // namespace espalier
