#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/slot_ledger.h"
#include "allocator/pool/speedup.h"

namespace espalier::policies {

namespace {

struct TiresiasSettings {
  double queue_slot_s;
  double share_spanned;
};

int Requested(const Job& job) {
  const int wanted = job.requested_slots > 0 ? job.requested_slots : MinSlots(job);
  return std::clamp(wanted, MinSlots(job), MaxSlots(job));
}

// Tiresias (Gu et al., NSDI 2019) as the Pollux paper compares itself with it: least attained
// service in two queues. A job runs on exactly the slots its user asked for, or not at all; it
// starts in the first queue and falls to the end of the second once it has held `queue_slot_s`
// slot-seconds. Jobs are admitted queue by queue, in the order they came in; one that does not fit
// is passed over, and what runs behind it makes way once it does fit. Remembers the queues.
class Tiresias : public Policy {
 public:
  explicit Tiresias(TiresiasSettings settings) : settings_(settings) {}
  std::vector<AllocationDecision> Allocate(const Pool& pool) override;
  bool settles() const override { return false; }
  bool preempts() const override { return true; }

 private:
  struct Queued {
    const Job* job;
    int queue;  // counted from one
  };

  std::vector<Queued> Queue(const Pool& pool);
  std::string Reason(const Queued& queued, const Placement& placement,
                     const std::string& loss) const;

  TiresiasSettings settings_;
  std::array<std::vector<TrialId>, 2> queues_;
};

// All jobs in the order in which they are admitted, after new ones were queued and those that have
// had their share were moved on.
std::vector<Tiresias::Queued> Tiresias::Queue(const Pool& pool) {
  const std::vector<const Job*> jobs = InOrder(pool);
  std::map<TrialId, const Job*> by_id;
  for (const Job* job : jobs) by_id[job->id] = job;
  std::set<TrialId> known;
  for (std::vector<TrialId>& queue : queues_) {
    std::erase_if(queue, [&](TrialId id) { return !by_id.contains(id); });
    known.insert(queue.begin(), queue.end());
  }
  for (const Job* job : jobs) {
    if (!known.contains(job->id)) queues_[0].push_back(job->id);
  }
  for (const Job* job : jobs) {
    if (job->current.empty() || job->held_s * Requested(*job) < settings_.queue_slot_s) continue;
    if (std::erase(queues_[0], job->id) > 0) queues_[1].push_back(job->id);
  }
  std::vector<Queued> order;
  for (int queue = 0; queue < 2; ++queue) {
    for (const TrialId id : queues_[static_cast<std::size_t>(queue)]) {
      order.push_back({by_id.at(id), queue + 1});
    }
  }
  return order;
}

std::string Tiresias::Reason(const Queued& queued, const Placement& placement,
                             const std::string& loss) const {
  const std::string why = loss.empty() ? "" : absl::StrCat(", ", loss);
  if (placement.empty()) {
    return absl::StrCat("pauses in queue ", queued.queue,
                        ": jobs before it need the slots it asks for", why);
  }
  const int slots = TotalSlots(placement);
  return absl::StrCat("runs on the ", SlotsText(slots), " it asks for, from queue ", queued.queue,
                      why);
}

std::vector<AllocationDecision> Tiresias::Allocate(const Pool& pool) {
  SlotLedger ledger(pool, settings_.share_spanned != 0);
  int left = ledger.usable();
  std::set<TrialId> settled;
  const std::vector<Queued> order = Queue(pool);
  for (const Queued& queued : order) {
    if (!queued.job->joining || !ledger.MayKeep(*queued.job)) continue;
    ledger.Take(queued.job->current);
    left -= TotalSlots(queued.job->current);
    settled.insert(queued.job->id);
  }
  std::set<TrialId> admitted;
  for (const Queued& queued : order) {
    const Job& job = *queued.job;
    if (settled.contains(job.id) || Requested(job) > left) continue;
    left -= Requested(job);
    admitted.insert(job.id);
    if (TotalSlots(job.current) != Requested(job) || !ledger.MayKeep(job)) continue;
    ledger.Take(job.current);
    settled.insert(job.id);
  }
  std::map<std::pair<std::int64_t, TrialId>, AllocationDecision> decisions;
  for (const Queued& queued : order) {
    const Job& job = *queued.job;
    if (settled.contains(job.id)) continue;
    const std::string loss = ledger.MayKeep(job) ? "" : ledger.Loss(job);
    Placement placement;
    if (admitted.contains(job.id)) {
      placement = ledger.Place(Requested(job)).value_or(Placement{});
      ledger.Take(placement);
    }
    if (placement == job.current) continue;
    decisions[{job.order, job.id}] = {job.id, placement, Reason(queued, placement, loss)};
  }
  std::vector<AllocationDecision> in_order;
  for (auto& [key, decision] : decisions) in_order.push_back(std::move(decision));
  return in_order;
}

}  // namespace

PluginRow<Policy> TiresiasRow() {
  return {
      {.name = "tiresias",
       .summary = "each trial gets what it asks for, least attained service first (NSDI 2019)",
       .options = {{.name = "queue_slot_s",
                    .default_value = 57600,
                    .meaning = "slot-seconds after which a trial falls into the second queue"},
                   {.name = "share_spanned",
                    .default_value = 0,
                    .most = 1,
                    .meaning =
                        "above 0: jobs that span nodes may share a node, as in the original"}}},
      [](const OptionValues& options) {
        return std::make_unique<Tiresias>(TiresiasSettings{
            .queue_slot_s = options["queue_slot_s"], .share_spanned = options["share_spanned"]});
      }};
}

}  // namespace espalier::policies
