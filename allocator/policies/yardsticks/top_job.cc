#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/board.h"
#include "allocator/pool/sizes.h"

namespace espalier::policies {

namespace {

// All free slots to the trial that is best by its metric, as Ray Tune's DistributeResourcesToTopJob
// (ray.tune.schedulers.ResourceChangingScheduler) gives them. What earlier best trials were given
// they keep to their end; waiting trials come first. It knows nothing of how trials scale, so that
// only a trial's maximum limits it.
class TopJob : public Policy {
 public:
  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    Board board(pool);
    Mend(board, /*reclaim=*/false);
    AdmitWaiting(board, /*reclaim=*/false);
    Sizes sizes(board);
    std::optional<std::size_t> best;
    for (std::size_t j = 0; j < board.size(); ++j) {
      const Job& job = *board.holder(j).job;
      if (!job.cost || std::isnan(*job.cost) || board.holder(j).total == 0) continue;
      if (!best || *job.cost < *board.holder(*best).job->cost) best = j;
    }
    if (best && sizes.MayResize(*best)) {
      const Holder& holder = board.holder(*best);
      const int most = std::min(MaxSlots(*holder.job), holder.total + board.total_free());
      sizes.Grow(*best, most, "takes what is free as the best trial so far");
    }
    return sizes.Decisions();
  }
};

}  // namespace

PluginRow<Policy> TopJobRow() {
  return {{.name = "top_job", .summary = "free slots go to the best trial (Ray Tune)"},
          [](const OptionValues&) { return std::make_unique<TopJob>(); }};
}

}  // namespace espalier::policies
