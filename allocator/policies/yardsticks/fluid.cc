#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"

namespace espalier::policies {

namespace {

// Seconds of a step on one slot; 0: not measured.
double HeightOf(const Job& job) {
  if (job.known_step_s && !job.known_step_s->empty()) return job.known_step_s->front();
  if (!job.goodput) return 0;
  const GoodputModel& model = *job.goodput;
  const std::int64_t batch = job.global_batch > 0 ? job.global_batch : model.bounds().initial;
  // One that does not run on a slot counts as if its fewest slots were in a row.
  for (int k = 1; k <= MaxSlots(job); ++k) {
    const BatchChoice choice = model.AtFixedGlobalBatch(1, k, batch);
    if (choice.throughput > 0) return k * static_cast<double>(batch) / choice.throughput;
  }
  return 0;
}

// Fluid's water filling (Yu et al., MLSys 2021, and github.com/SymbioticLab/Fluid): the longer a
// trial's step takes on one slot (its height h), the wider it is made, so that all trials of a
// group end together. Widths w = min(max(floor(h * n / sum h), 1), d) for n trials are scaled to
// the slots there are. Divided anew when a trial comes, goes or is measured for the first time, or
// the slots change. Trials that were not measured yet have their minimum.
//
// Differences: no trial has less than a slot, since slots are not shared here; whole slots by the
// largest remainder of w over what is given; all trials of the pool are one group.
class Fluid : public Policy {
 public:
  explicit Fluid(double max_width) : max_width_(max_width) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool);
    Mend(board, /*reclaim=*/true);
    AdmitWaiting(board, /*reclaim=*/true);
    Sizes sizes(board);
    sizes.Settle(/*reclaim=*/true, [&] { Divide(board, sizes); });
    return sizes.Decisions();
  }

 private:
  struct Group {
    int slots = 0;
    std::map<TrialId, bool> measured{};
    friend bool operator==(const Group&, const Group&) = default;
  };

  void Divide(Board& board, Sizes& sizes) {
    Group group{.slots = board.total_capacity()};
    std::map<std::size_t, double> heights;  // of those that are divided among
    int slots = board.total_free();
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Holder& holder = board.holder(j);
      if (holder.total == 0) continue;
      const double height = HeightOf(*holder.job);
      group.measured[holder.job->id] = height > 0;
      if (!sizes.MayResize(j) || !(height > 0)) continue;
      heights[j] = height;
      slots += holder.total;
    }
    if (group != group_) {
      group_ = std::move(group);
      widths_.clear();
      for (const auto& [j, width] : Widths(heights)) widths_[board.holder(j).job->id] = width;
    }
    sizes.BringTo(Targets(board, heights, slots), [&](std::size_t j) {
      return absl::StrFormat("its width is %g", WidthOf(*board.holder(j).job));
    });
  }

  double WidthOf(const Job& job) const {
    const auto width = widths_.find(job.id);
    return width == widths_.end() ? 1 : width->second;
  }

  std::map<std::size_t, double> Widths(const std::map<std::size_t, double>& heights) const {
    double sum = 0;
    for (const auto& [j, height] : heights) sum += height;
    std::map<std::size_t, double> widths;
    for (const auto& [j, height] : heights) {
      const double share = height * static_cast<double>(heights.size()) / sum;
      widths[j] = std::min(std::max(std::floor(share), 1.0), max_width_);
    }
    return widths;
  }

  // Slots in proportion to the widths, within what each may have.
  std::vector<int> Targets(const Board& board, const std::map<std::size_t, double>& heights,
                           int slots) const {
    std::vector<int> targets(board.size());
    for (std::size_t j = 0; j < board.size(); ++j) {
      targets[j] = board.holder(j).total;
      if (!heights.contains(j)) continue;
      targets[j] = std::min(targets[j], MinSlots(*board.holder(j).job));
      slots -= targets[j];
    }
    for (; slots > 0; --slots) {
      int neediest = -1;
      double most = 0;
      for (const auto& [j, height] : heights) {
        const Job& job = *board.holder(j).job;
        const double need = WidthOf(job) / (targets[j] + 1);
        if (targets[j] >= GrowthCap(job) || need <= most) continue;
        most = need;
        neediest = static_cast<int>(j);
      }
      if (neediest < 0) break;
      ++targets[static_cast<std::size_t>(neediest)];
    }
    return targets;
  }

  const double max_width_;
  Group group_;
  std::map<TrialId, double> widths_;
};

}  // namespace

PluginRow<Policy> FluidRow() {
  return {
      {.name = "fluid",
       .summary = "slots in proportion to step times on one slot (MLSys 2021)",
       .options = {{.name = "max_width",
                    .default_value = 4,
                    .least = 1,
                    .meaning = "d, the largest width of a trial"}}},
      [](const OptionValues& options) { return std::make_unique<Fluid>(options["max_width"]); }};
}

}  // namespace espalier::policies
