#include "allocator/policies/tiresias.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/policies/settings.h"
#include "allocator/pool/slot_ledger.h"
#include "allocator/pool/speedup.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

struct Settings {
  double queue_slot_s = 16 * 3600;
  double share_spanned = 0;
};

int Requested(const Job& job) {
  const int wanted = job.requested_slots > 0 ? job.requested_slots : MinSlots(job);
  return std::clamp(wanted, MinSlots(job), MaxSlots(job));
}

class Tiresias : public Policy {
 public:
  explicit Tiresias(Settings settings) : settings_(settings) {}
  std::vector<AllocationDecision> Allocate(const Pool& pool) override;

 private:
  struct Queued {
    const Job* job;
    int queue;  // counted from one
  };

  std::vector<Queued> Queue(const Pool& pool);
  std::string Reason(const Queued& queued, const Placement& placement,
                     const std::string& loss) const;

  Settings settings_;
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
  return absl::StrCat("runs on the ", slots, slots == 1 ? " slot" : " slots",
                      " it asks for, from queue ", queued.queue, why);
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

absl::StatusOr<std::unique_ptr<Policy>> MakeTiresias(const Options& options) {
  Settings settings;
  const std::array known = {SettingRow{"queue_slot_s", &settings.queue_slot_s},
                            SettingRow{"share_spanned", &settings.share_spanned, 0, 1}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("tiresias", options, known));
  return std::make_unique<Tiresias>(settings);
}

}  // namespace espalier
