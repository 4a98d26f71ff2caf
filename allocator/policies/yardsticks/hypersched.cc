#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"

namespace espalier::policies {

namespace {

struct HyperSchedSettings {
  double leftover;
  double min_gain;
};

double CostOf(const Job& job) {
  return job.cost && !std::isnan(*job.cost) ? *job.cost : std::numeric_limits<double>::infinity();
}

// The startup that nine of ten resizes stay below.
double Startup_s(const Pool& pool) {
  std::vector<double> costs;
  for (const Job& job : pool.jobs) costs.push_back(std::max(0.0, job.resize_cost_s));
  if (costs.empty()) return 0;
  std::sort(costs.begin(), costs.end());
  return costs[static_cast<std::size_t>(std::lround(0.9 * static_cast<double>(costs.size() - 1)))];
}

// What is left over beyond the minimum of each, as targets of slots.
class Leftover {
 public:
  Leftover(const Board& board, const Sizes& sizes) : board_(board), targets_(board.size()) {
    left_ = board.total_free();
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Holder& holder = board.holder(j);
      targets_[j] = holder.total;
      if (!sizes.MayResize(j)) continue;
      targets_[j] = std::min(holder.total, MinSlots(*holder.job));
      left_ += holder.total - targets_[j];
      by_rank_.push_back(j);
    }
    std::stable_sort(by_rank_.begin(), by_rank_.end(), [&](std::size_t a, std::size_t b) {
      return CostOf(*board.holder(a).job) < CostOf(*board.holder(b).job);
    });
  }

  void Uniform() {
    for (bool given = true; given && left_ > 0;) {
      given = false;
      for (const std::size_t j : by_rank_) given |= Give(j, 1) > 0;
    }
  }

  void TopJob() {
    for (const std::size_t j : by_rank_) Give(j, left_);
  }

  void Softmax() {
    std::vector<double> weights;
    const double best = by_rank_.empty() ? 0 : CostOf(*board_.holder(by_rank_.front()).job);
    if (!std::isfinite(best)) return Uniform();
    for (const std::size_t j : by_rank_) {
      weights.push_back(std::exp(best - CostOf(*board_.holder(j).job)));
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    const int all = left_;
    for (std::size_t r = 0; r < by_rank_.size(); ++r) {
      Give(by_rank_[r], static_cast<int>(std::floor(weights[r] / sum * all)));
    }
    TopJob();
  }

  const std::vector<int>& targets() const { return targets_; }  // by holder

 private:
  int Give(std::size_t j, int slots) {
    const int given =
        std::clamp(GrowthCap(*board_.holder(j).job) - targets_[j], 0, std::min(slots, left_));
    targets_[j] += given;
    left_ -= given;
    return given;
  }

  const Board& board_;
  std::vector<std::size_t> by_rank_;
  int left_ = 0;
  std::vector<int> targets_;
};

// HyperSched's allocation (Liaw et al., SoCC 2019, and github.com/ucbrise/hypersched): every live
// trial gets its minimum, and what is left goes by rank of the metric. A trial shrinks at once; it
// grows if f(new) * (T - startup) / (f(old) * T) > min_gain, with its speedup f, the time T to the
// deadline and the 90th percentile of what resizes have cost. Without a deadline the speedup alone
// decides. Its exploration stop is the core's business.
//
// Differences: decided anew at each call, not each five results; a trial without a value ranks
// behind those with one; what a trial cannot use goes to the next.
class HyperSched : public Policy {
 public:
  explicit HyperSched(const HyperSchedSettings& settings) : settings_(settings) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool, &cache_);
    cache_.KeepOnly(pool);
    Mend(board, /*reclaim=*/true);
    AdmitWaiting(board, /*reclaim=*/true);
    Sizes sizes(board);
    const double startup_s = Startup_s(pool);
    sizes.Settle(/*reclaim=*/true, [&] { Divide(board, sizes, startup_s); });
    return sizes.Decisions();
  }

 private:
  void Divide(Board& board, Sizes& sizes, double startup_s) const {
    Leftover leftover(board, sizes);
    if (settings_.leftover == 0) {
      leftover.Uniform();
    } else if (settings_.leftover == 1) {
      leftover.TopJob();
    } else {
      leftover.Softmax();
    }
    const std::vector<int>& targets = leftover.targets();
    const auto why = [&](std::size_t j) {
      return absl::StrFormat("its share by rank is %d", targets[j]);
    };
    for (std::size_t j = 0; j < board.size(); ++j) {
      if (sizes.MayResize(j) && board.holder(j).total > targets[j]) {
        sizes.Shrink(j, targets[j], why(j));
      }
    }
    for (std::size_t j = 0; j < board.size(); ++j) {
      if (!sizes.MayResize(j) || board.holder(j).total >= targets[j]) continue;
      const Job& job = *board.holder(j).job;
      double kept = 1;  // share of the time left that a restart leaves
      if (job.time_left_s > 0) kept = std::max(0.0, 1 - startup_s / job.time_left_s);
      const double now = board.SpeedupNow(j);
      sizes.Grow(j, targets[j], why(j), [&](const Shares& shares) {
        return job.current.empty() ||
               board.SpeedupWith(j, shares) * kept > settings_.min_gain * now;
      });
    }
  }

  const HyperSchedSettings settings_;
  SpeedupCache cache_;
};

}  // namespace

PluginRow<Policy> HyperSchedRow() {
  return {{.name = "hypersched",
           .summary =
               "slots beyond the minimums go by rank of the metric, before a deadline (SoCC 2019)",
           .options = {{.name = "leftover",
                        .default_value = 1,
                        .most = 2,
                        .whole = true,
                        .meaning = "remaining slots go 0: round-robin by rank, 1: to the best, 2: "
                                   "by softmax of the metric"},
                       {.name = "min_gain",
                        .default_value = 1.1,
                        .meaning = "speedup that a larger size must bring, after its pause"}}},
          [](const OptionValues& options) {
            return std::make_unique<HyperSched>(HyperSchedSettings{
                .leftover = options["leftover"], .min_gain = options["min_gain"]});
          }};
}

}  // namespace espalier::policies
