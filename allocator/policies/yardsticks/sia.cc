#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "allocator/policies/policy.h"
#include "allocator/policies/yardsticks/rounds.h"
#include "allocator/policies/yardsticks/sia_rows.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"
#include "allocator/pool/transition.h"

namespace espalier::policies {

namespace {

struct SiaSettings {
  double interval_s;
  double fairness;
  double lambda;
};

// The choices of a round, brought onto the board.
class Placing {
 public:
  Placing(Board& board, std::vector<std::optional<SiaEntry>> wanted)
      : board_(board), wanted_(std::move(wanted)) {}

  // Trials that have more than they shall have give it up; then the largest choices are placed
  // first.
  void Run() {
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < board_.size(); ++j) {
      if (!wanted_[j]) continue;
      const SiaEntry& entry = *wanted_[j];
      if (entry.slots == 0) {
        board_.Assign(j, {});
      } else if (SameType(j) && entry.slots < board_.holder(j).total) {
        board_.Assign(j, board_.Shrunk(j, entry.slots));
      } else if (!SameType(j) || entry.slots > board_.holder(j).total) {
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
    return board_.type_of(board_.holder(j).shares) == wanted_[j]->type;
  }

  void Place(std::size_t j) {
    const SiaEntry& entry = *wanted_[j];
    const int least = MinSlots(*board_.holder(j).job);
    for (int slots = entry.slots; slots >= least; slots /= 2) {
      if (SameType(j) && slots <= board_.holder(j).total) return;
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

// Sia (Jayaram Subramanya et al., SOSP 2023), section 3: each round every trial chooses one row
// entry or none. Entries are powers of two within a node and whole nodes beyond, on one GPU type;
// their goodput is relative to the row's least, times (T - N S) / (T + S) where the trial would
// have to restart, with its age T, its restarts N and their cost S. The sum of
// goodput^fairness, and of lambda for each trial that gets nothing, is made least: exactly on one
// GPU type, by prices of the types and exactly within each on several. Blind to the metric.
//
// Differences: a trial keeps its nodes where it can and a choice that finds no place is halved,
// where Sia moves others to make whole nodes; between two rounds lost slots are mended and waiting
// trials get their minimum on free slots; no bootstrap profiling of each type.
class Sia : public Policy {
 public:
  explicit Sia(const SiaSettings& settings) : settings_(settings) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool, &cache_);
    cache_.KeepOnly(pool);
    Mend(board, /*reclaim=*/false);
    Sizes sizes(board);
    const bool due = RoundIsDue(round_at_s_, pool.now_s, settings_.interval_s);
    if (due && board.size() > 0 && board.total_capacity() > 0) {
      round_at_s_ = pool.now_s;
      Round(board, sizes);
    }
    sizes.Settle(/*reclaim=*/false);
    return sizes.Decisions();
  }
  bool settles() const override { return false; }
  bool preempts() const override { return true; }

 private:
  void Round(Board& board, Sizes& sizes) {
    std::vector<int> capacity(board.types().size(), 0);
    for (std::size_t n = 0; n < board.node_count(); ++n) {
      capacity[static_cast<std::size_t>(board.type_of(n))] += board.free_on(n);
    }
    std::vector<SiaRow> rows(board.size());
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Holder& holder = board.holder(j);
      if (holder.job->joining) continue;
      rows[j] = SiaRowOf(board, j, settings_.fairness, settings_.lambda);
      for (const Share& share : holder.shares) {
        const auto n = static_cast<std::size_t>(share.node);
        if (board.draining(n)) continue;
        capacity[static_cast<std::size_t>(board.type_of(n))] += share.slots;
      }
    }
    const std::vector<int> chosen = ChooseEntries(rows, capacity);
    std::vector<std::optional<SiaEntry>> wanted(board.size());
    for (std::size_t j = 0; j < board.size(); ++j) {
      if (board.holder(j).job->joining) continue;
      wanted[j] = chosen[j] < 0 ? SiaEntry{} : rows[j][static_cast<std::size_t>(chosen[j])];
    }
    Board plan = board;
    Placing(plan, wanted).Run();
    std::vector<Shares> planned;
    for (std::size_t j = 0; j < plan.size(); ++j) planned.push_back(plan.holder(j).shares);
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

PluginRow<Policy> SiaPolicyRow() {
  return {{.name = "sia",
           .summary = "in rounds, the best choice of one configuration for each trial (SOSP 2023)",
           .options = {{.name = "interval_s",
                        .default_value = 60,
                        .meaning = "seconds from one round to the next"},
                       {.name = "fairness",
                        .default_value = -0.5,
                        .least = -10,
                        .most = -0.01,
                        .meaning = "exponent of goodput in the objective; lower is fairer"},
                       {.name = "lambda",
                        .default_value = 1.1,
                        .meaning = "penalty for a trial that gets nothing"}}},
          [](const OptionValues& options) {
            return std::make_unique<Sia>(SiaSettings{.interval_s = options["interval_s"],
                                                     .fairness = options["fairness"],
                                                     .lambda = options["lambda"]});
          }};
}

}  // namespace espalier::policies
