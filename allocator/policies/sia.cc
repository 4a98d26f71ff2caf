#include "allocator/policies/sia.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "allocator/policies/settings.h"
#include "allocator/policies/sia_rows.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"
#include "allocator/pool/transition.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

constexpr double kClockRounding_s = 1e-6;

struct SiaSettings {
  double interval_s = 60;
  double fairness = -0.5;
  double lambda = 1.1;
};

// The choices of a round, brought onto the board.
class Placing {
 public:
  Placing(Board& board, std::vector<std::optional<SiaEntry>> wanted)
      : board_(board), wanted_(std::move(wanted)) {}

  // Who has more than it shall have gives it up, then the largest choices are placed first.
  void Run() {
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      if (!wanted_[j]) continue;
      const SiaEntry& entry = *wanted_[j];
      if (entry.slots == 0) {
        board_.Assign(j, {});
      } else if (SameType(j) && entry.slots < board_.seat(j).total) {
        board_.Assign(j, board_.Shrunk(j, entry.slots));
      } else if (!SameType(j) || entry.slots > board_.seat(j).total) {
        order.push_back(j);
      }
    }
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
      return wanted_[a]->slots > wanted_[b]->slots;
    });
    for (const std::size_t j : order) Place(j);
  }

 private:
  bool SameType(std::size_t j) const {
    return board_.type_of(board_.seat(j).shares) == wanted_[j]->type;
  }

  void Place(std::size_t j) {
    const SiaEntry& entry = *wanted_[j];
    const int least = MinSlots(*board_.seat(j).job);
    for (int slots = entry.slots; slots >= least; slots /= 2) {
      if (SameType(j) && slots <= board_.seat(j).total) return;
      std::optional<Shares> shares;
      if (SameType(j)) shares = board_.Grown(j, slots);
      if (!shares || static_cast<int>(shares->size()) > entry.nodes) {
        if (auto fresh = board_.Fresh(j, slots, entry.type)) shares = std::move(fresh);
      }
      if (!shares) continue;
      board_.Assign(j, *std::move(shares));
      return;
    }
  }

  Board& board_;
  const std::vector<std::optional<SiaEntry>> wanted_;
};

class Sia : public Policy {
 public:
  explicit Sia(const SiaSettings& settings) : settings_(settings) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool, &cache_);
    cache_.KeepOnly(pool);
    Mend(board, /*reclaim=*/false);
    Sizes sizes(board);
    const bool due =
        !round_at_s_ || pool.now_s - *round_at_s_ >= settings_.interval_s - kClockRounding_s;
    if (due && board.size() > 0 && board.total_capacity() > 0) {
      round_at_s_ = pool.now_s;
      Round(board, sizes);
    }
    sizes.Settle(/*reclaim=*/false);
    return sizes.Decisions();
  }

 private:
  void Round(Board& board, Sizes& sizes) {
    std::vector<int> capacity(board.types().size(), 0);
    for (std::size_t n = 0; n < board.node_count(); ++n) {
      capacity[static_cast<std::size_t>(board.type_of(n))] += board.free_on(n);
    }
    std::vector<SiaRow> rows(board.size());
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Seat& seat = board.seat(j);
      if (seat.job->joining) continue;
      rows[j] = SiaRowOf(board, j, settings_.fairness, settings_.lambda);
      for (const Share& share : seat.shares) {
        const auto n = static_cast<std::size_t>(share.node);
        if (board.draining(n)) continue;
        capacity[static_cast<std::size_t>(board.type_of(n))] += share.slots;
      }
    }
    const std::vector<int> chosen = ChooseEntries(rows, capacity);
    std::vector<std::optional<SiaEntry>> wanted(board.size());
    for (std::size_t j = 0; j < board.size(); ++j) {
      if (board.seat(j).job->joining) continue;
      wanted[j] = chosen[j] < 0 ? SiaEntry{} : rows[j][static_cast<std::size_t>(chosen[j])];
    }
    Board plan = board;
    Placing(plan, wanted).Run();
    std::vector<Shares> planned;
    for (std::size_t j = 0; j < plan.size(); ++j) planned.push_back(plan.seat(j).shares);
    KeepMovesPossible(board, planned);
    sizes.Take(planned, [&](std::size_t j) {
      return absl::StrFormat("%d slots for it are best for all in this round", wanted[j]->slots);
    });
  }

  const SiaSettings settings_;
  SpeedupCache cache_;
  std::optional<double> round_at_s_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakeSia(const Options& options) {
  SiaSettings settings;
  const std::array known = {SettingRow{"interval_s", &settings.interval_s},
                            SettingRow{"fairness", &settings.fairness, -10, -0.01},
                            SettingRow{"lambda", &settings.lambda}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("sia", options, known));
  return std::make_unique<Sia>(settings);
}

}  // namespace espalier
