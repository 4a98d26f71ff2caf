#include "allocator/policies/yardsticks/scale_out.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"

namespace espalier {

namespace {

constexpr double kWorthRounding = 1e-9;

class Scaling {
 public:
  Scaling(Board& board, int step, const StepWorth& worth, const std::string& measure)
      : board_(board), sizes_(board), step_(step), worth_(worth), measure_(measure) {}

  void TakeBack() {
    for (std::size_t j = 0; j < board_.size(); ++j) {
      while (sizes_.MayResize(j)) {
        const int fewer = std::max(board_.holder(j).total - step_, MinSlots(*board_.holder(j).job));
        if (fewer >= board_.holder(j).total) break;
        const double worth = Worth(j, board_.Shrunk(j, fewer), board_.holder(j).shares);
        if (worth > -kWorthRounding) break;
        sizes_.Shrink(j, fewer, absl::StrFormat("%s of the last step is %+.3f", measure_, worth));
      }
    }
  }

  // Each step may change where others would grow to, so that all are asked again in the end.
  void Grow() {
    while (GrowOnce()) {
    }
  }

  Sizes& sizes() { return sizes_; }
  std::vector<AllocationDecision> Decisions() { return sizes_.Decisions(); }

 private:
  struct Growth {
    int slots = 0;
    double worth = 0;  // 0: none
  };

  bool GrowOnce() {
    std::vector<Growth> growths(board_.size());
    for (std::size_t j = 0; j < board_.size(); ++j) growths[j] = Next(j);
    bool changed = false;
    while (board_.total_free() > 0) {
      const auto best =
          std::max_element(growths.begin(), growths.end(),
                           [](const Growth& a, const Growth& b) { return a.worth < b.worth; });
      if (best == growths.end() || best->worth <= kWorthRounding) break;
      const auto j = static_cast<std::size_t>(best - growths.begin());
      const Growth again = Next(j);
      *best = {};
      if (again.worth <= kWorthRounding) continue;
      changed |= sizes_.Grow(
          j, again.slots, absl::StrFormat("%s of the last step is %+.3f", measure_, again.worth));
      *best = Next(j);
    }
    return changed;
  }

  double Rate(std::size_t j, const Shares& shares) {
    const Job& job = *board_.holder(j).job;
    const int slots = TotalSlots(shares);
    if (job.goodput || !job.known_step_s) return board_.SpeedupWith(j, shares);
    const std::vector<double>& step_s = *job.known_step_s;
    const auto k = static_cast<std::size_t>(slots);
    return k >= 1 && k <= step_s.size() ? 1 / step_s[k - 1] : 0;
  }

  double Worth(std::size_t j, const Shares& fewer, const Shares& more) {
    return worth_({.slots = TotalSlots(fewer),
                   .rate = Rate(j, fewer),
                   .slots_then = TotalSlots(more),
                   .rate_then = Rate(j, more)});
  }

  Growth Next(std::size_t j) {
    if (!sizes_.MayResize(j)) return {};
    const Holder& holder = board_.holder(j);
    const int slots = std::min(holder.total + step_, GrowthCap(*holder.job));
    if (slots <= holder.total) return {};
    const std::optional<Shares> grown = board_.Grown(j, slots);
    if (!grown) return {};
    return {slots, Worth(j, holder.shares, *grown)};
  }

  Board& board_;
  Sizes sizes_;
  const int step_;
  const StepWorth& worth_;
  const std::string& measure_;
};

}  // namespace

std::vector<AllocationDecision> ScaleOut(const Pool& pool, int step, const StepWorth& worth,
                                         const std::string& measure) {
  Board board(pool);
  Mend(board, /*reclaim=*/true);
  AdmitWaiting(board, /*reclaim=*/true);
  Scaling scaling(board, step, worth, measure);
  // A step may lead to nodes from which going back leads to better ones.
  scaling.sizes().Settle(/*reclaim=*/true, [&scaling] {
    scaling.TakeBack();
    scaling.Grow();
  });
  return scaling.Decisions();
}

PluginOption StepOption() {
  return {.name = "step",
          .default_value = 1,
          .least = 1,
          .most = 1024,
          .whole = true,
          .meaning = "slots by which a trial grows or shrinks at a time"};
}

}  // namespace espalier
