#include "allocator/pool/speedup.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace espalier {

namespace {

constexpr double kFurthestTry = 8;
constexpr int kDense = 64;  // a table by replicas has no more entries, or it costs more to clear

bool SameModel(const GoodputModel& a, const GoodputModel& b) {
  return a.params() == b.params() && a.noise().sqr == b.noise().sqr &&
         a.noise().var == b.noise().var && a.bounds() == b.bounds();
}

}  // namespace

int MinSlots(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : std::max(1, job.min_slots);
}

int MaxSlots(const Job& job) {
  return job.pinned_slots > 0 ? job.pinned_slots : std::max(MinSlots(job), job.max_slots);
}

bool MayHold(const Job& job, int slots) {
  if (slots < MinSlots(job) || slots > MaxSlots(job)) return false;
  return job.sizes.empty() || job.pinned_slots > 0 ||
         std::binary_search(job.sizes.begin(), job.sizes.end(), slots);
}

bool FitsSizes(const Job& job, int slots) {
  return job.sizes.empty() || slots == 0 || MayHold(job, slots);
}

int LargestSize(const Job& job, int slots) {
  const int most = std::min(slots, MaxSlots(job));
  if (most < MinSlots(job)) return 0;
  if (job.sizes.empty() || job.pinned_slots > 0) return most;
  const auto above = std::upper_bound(job.sizes.begin(), job.sizes.end(), most);
  if (above == job.sizes.begin() || *std::prev(above) < MinSlots(job)) return 0;
  return *std::prev(above);
}

int NextSize(const Job& job, int slots) {
  int next = std::max(slots + 1, MinSlots(job));
  if (!job.sizes.empty() && job.pinned_slots == 0) {
    const auto at = std::lower_bound(job.sizes.begin(), job.sizes.end(), next);
    if (at == job.sizes.end()) return 0;
    next = *at;
  }
  return next <= MaxSlots(job) ? next : 0;
}

int GrowthCap(const Job& job, int factor) {
  int cap = std::min(MaxSlots(job), std::max(2, factor * job.max_profiled_replicas));
  if (!job.sizes.empty()) cap = std::max(cap, NextSize(job, job.max_profiled_replicas));
  if (job.fixed_batch && job.global_batch > 0) {
    cap = static_cast<int>(std::min<std::int64_t>(cap, job.global_batch));
  }
  return std::max(cap, MinSlots(job));
}

int PauseAwareGrowthCap(const Job& job) {
  const double factor = 2 * std::sqrt(std::max(1.0, job.resize_cost_s));
  return GrowthCap(job, static_cast<int>(std::min(factor, kFurthestTry)));
}

SpeedupCurve::SpeedupCurve(const Job& job)
    : fixed_batch_(job.fixed_batch), global_batch_(job.global_batch), max_slots_(MaxSlots(job)) {
  if (!job.goodput) return;
  reference_.push_back({*job.goodput});
  for (const auto& [type, model] : job.goodput_by_gpu_type) by_type_.emplace(type, Table{model});
  for (int replicas = 1; replicas <= max_slots_ && unit_ == 0; ++replicas) {
    unit_ = Goodput(*job.goodput, 1, replicas) / replicas;
  }
}

bool SpeedupCurve::Fits(const Job& job) const {
  if (job.goodput.has_value() != !reference_.empty()) return false;
  if (!job.goodput) return true;
  if (job.fixed_batch != fixed_batch_ || job.global_batch != global_batch_) return false;
  // The most slots matter only where one is too few.
  if (MaxSlots(job) != max_slots_ && Goodput(*job.goodput, 1, 1) == 0) return false;
  return SameModel(*job.goodput, reference_.front().model) &&
         std::equal(by_type_.begin(), by_type_.end(), job.goodput_by_gpu_type.begin(),
                    job.goodput_by_gpu_type.end(), [](const auto& known, const auto& given) {
                      return known.first == given.first &&
                             SameModel(known.second.model, given.second);
                    });
}

double SpeedupCurve::Goodput(const GoodputModel& model, int nodes, int replicas) const {
  double goodput = 0;
  if (fixed_batch_) {
    const std::int64_t batch = global_batch_ > 0 ? global_batch_ : model.bounds().initial;
    goodput = model.AtFixedGlobalBatch(nodes, replicas, batch).goodput;
  } else {
    goodput = model.NearlyOptimalGoodput(nodes, replicas);
  }
  // A model that makes no sense there promises nothing there.
  return std::isfinite(goodput) && goodput > 0 ? goodput : 0.0;
}

double SpeedupCurve::Lookup(Table& table, int nodes, int replicas) {
  if (nodes > 1 && replicas > kDense) {
    const auto [entry, is_new] = table.wide.try_emplace(replicas);
    if (is_new) entry->second = Goodput(table.model, 2, replicas) / unit_;
    return entry->second;
  }
  std::vector<double>& known = nodes > 1 ? table.cross : table.local;
  const auto at = static_cast<std::size_t>(replicas);
  if (known.size() <= at) known.resize(at + 1, -1.0);
  if (known[at] < 0) known[at] = Goodput(table.model, std::min(nodes, 2), replicas) / unit_;
  return known[at];
}

double SpeedupCurve::At(int nodes, int replicas, std::string_view gpu_type) {
  if (unit_ == 0 || replicas <= 0) return std::max(0, replicas);
  if (!by_type_.empty()) {
    const auto own = by_type_.find(gpu_type);
    if (own != by_type_.end()) return Lookup(own->second, nodes, replicas);
  }
  return Lookup(reference_.front(), nodes, replicas);
}

std::shared_ptr<SpeedupCurve> SpeedupCache::CurveOf(const Job& job) {
  std::shared_ptr<SpeedupCurve>& curve = curves_[job.id];
  if (!curve || !curve->Fits(job)) curve = std::make_shared<SpeedupCurve>(job);
  return curve;
}

void SpeedupCache::KeepOnly(const Pool& pool) {
  if (curves_.size() <= 2 * pool.jobs.size() + 64) return;
  std::set<TrialId> present;
  for (const Job& job : pool.jobs) present.insert(job.id);
  std::erase_if(curves_, [&present](const auto& entry) { return !present.contains(entry.first); });
}

}  // namespace espalier
