#include "allocator/pool/study_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace espalier {

namespace {

constexpr double kLeastGain = 0.05;  // in speedup for each slot, below which growth is waste
constexpr int kSizes = 16;           // of growth that are compared, and twice the present one
constexpr double kNotOwed = -1e12;   // slots
constexpr double kUnfitted = 0.95;   // distance of a weight from a gain that must (not) be reached

// Adding slots to one job.
struct Growth {
  double gain = 0;  // promise-weighted speedup for each slot
  std::size_t job = 0;
  int from = 0;
  int to = 0;
  double speedup = 0;  // added

  // Among equals the one submitted first grows.
  friend bool operator<(const Growth& a, const Growth& b) {
    return std::tie(a.gain, b.job) < std::tie(b.gain, a.job);
  }
};

// One study as it is filled up.
class Claim {
 public:
  Claim(double share, double owed, int node_slots)
      : share_(share), owed_(owed), node_slots_(node_slots) {}

  void Add(const Job& job, std::shared_ptr<SpeedupCurve> curve) {
    jobs_.push_back({&job, std::move(curve)});
  }
  void Start(const StudyDemand& demand) {
    std::stable_sort(jobs_.begin(), jobs_.end(), [](const Claimant& a, const Claimant& b) {
      return std::tie(a.job->order, a.job->id) < std::tie(b.job->order, b.job->id);
    });
    demand_ = demand;
  }

  // The slots that it takes next, and what they add; 0: it can use no more.
  int NextSlots() const {
    if (placed_ < jobs_.size()) return MinSlots(*jobs_[placed_].job);
    if (demand_.configurations > 0) return demand_.slots_each;
    return growths_.empty() ? 0 : growths_.top().to - growths_.top().from;
  }
  double NextSpeedup() {
    if (placed_ < jobs_.size()) return SpeedupAt(placed_, MinSlots(*jobs_[placed_].job));
    if (demand_.configurations > 0) return demand_.slots_each;
    return growths_.top().speedup;
  }
  void Take() {
    part_.slots += NextSlots();
    part_.goodput += NextSpeedup();
    if (placed_ < jobs_.size()) {
      Offer(placed_, MinSlots(*jobs_[placed_].job));
      ++placed_;
    } else if (demand_.configurations > 0) {
      --demand_.configurations;
      ++started_;
    } else {
      const Growth taken = growths_.top();
      growths_.pop();
      last_gain_ = taken.gain;
      Offer(taken.job, taken.to);
    }
  }
  // What comes next does not fit any more: whatever is smaller might.
  void Skip() {
    if (placed_ < jobs_.size()) {
      ++placed_;
    } else if (demand_.configurations > 0) {
      demand_.configurations = 0;
    } else {
      if (!first_refused_) first_refused_ = growths_.top().gain;
      growths_.pop();
    }
  }

  // Configurations that were counted in and would free `slots` slots if they were not; none if
  // there are too few.
  std::optional<int> ConfigurationsOf(int slots) const {
    const int count = (slots + demand_.slots_each - 1) / demand_.slots_each;
    return count <= started_ ? std::optional(count) : std::nullopt;
  }
  int TakeBack(int configurations) {
    const int slots = configurations * demand_.slots_each;
    started_ -= configurations;
    demand_.configurations += configurations;
    part_.slots -= slots;
    part_.goodput -= slots;
    return slots;
  }
  double goodput_per_share_without(int configurations) const {
    return (part_.goodput - configurations * demand_.slots_each) / share_;
  }
  double goodput_per_share() const { return part_.goodput / share_; }
  // What it has had of its share, if it gets what it has been given here.
  double standing() const { return (part_.slots - owed_) / share_; }
  bool next_is_trial() const { return placed_ < jobs_.size() || demand_.configurations > 0; }

  StudyPart Result() const {
    StudyPart part = part_;
    std::optional<double> next = first_refused_;
    if (!next && !growths_.empty()) next = growths_.top().gain;
    if (last_gain_ && next) {
      part.weight = 1 / std::sqrt(*last_gain_ * *next);
    } else if (last_gain_) {
      part.weight = 1 / (*last_gain_ * kUnfitted);
    } else if (next) {
      part.weight = kUnfitted / *next;
    }
    return part;
  }

 private:
  struct Claimant {
    const Job* job;
    std::shared_ptr<SpeedupCurve> curve;
  };

  double SpeedupAt(std::size_t j, int slots) {
    const int bound = jobs_[j].job->most_on_node;
    const int on_one = bound > 0 ? std::min(bound, node_slots_) : node_slots_;
    return jobs_[j].curve->At((slots + on_one - 1) / on_one, slots);
  }

  void Offer(std::size_t j, int from) {
    const Job& job = *jobs_[j].job;
    const double promise = std::isfinite(job.promise) ? std::clamp(job.promise, 0.0, 1.0) : 0.0;
    Growth best;
    // A batch that does not divide evenly makes curves of steps: the best of several sizes.
    int most = std::min(GrowthCap(job), std::max(2 * from, from + 1));
    if (!job.sizes.empty()) most = std::max(most, std::min(GrowthCap(job), NextSize(job, from)));
    for (int to = from + 1; to <= most; to = to < from + kSizes ? to + 1 : std::max(most, to + 1)) {
      if (!FitsSizes(job, to)) continue;
      const double speedup = SpeedupAt(j, to) - SpeedupAt(j, from);
      const double each = speedup / (to - from);
      if (each < kLeastGain || promise * each <= best.gain) continue;
      best = {.gain = promise * each, .job = j, .from = from, .to = to, .speedup = speedup};
    }
    if (best.gain > 0) growths_.push(best);
  }

  const double share_;
  const double owed_;
  const int node_slots_;
  std::vector<Claimant> jobs_;
  std::size_t placed_ = 0;
  StudyDemand demand_;
  int started_ = 0;  // of its configurations
  std::priority_queue<Growth> growths_;
  std::optional<double> last_gain_, first_refused_;
  StudyPart part_;
};

// What `slots` more slots add to the power mean, each, as a logarithm.
double Urgency(Claim& claim, double fairness) {
  const double each = claim.NextSpeedup() / claim.NextSlots();
  if (each <= 0) return -std::numeric_limits<double>::infinity();
  const double had = claim.goodput_per_share();
  if (had <= 0) return std::numeric_limits<double>::infinity();
  return (fairness - 1) * std::log(had) + std::log(each);
}

// Growth comes in lumps where a batch divides badly. One that is a few slots short is made room for
// by configurations of another study, if that still has more than the one that grows.
int SlotsFromOthers(std::map<StudyId, Claim>& claims, Claim& short_of, int missing) {
  for (auto& [id, claim] : claims) {
    if (&claim == &short_of) continue;
    const auto count = claim.ConfigurationsOf(missing);
    if (!count || claim.goodput_per_share_without(*count) <= short_of.goodput_per_share()) continue;
    return claim.TakeBack(*count);
  }
  return 0;
}

// Whose turn it is to have a trial: of those that have had least of their share. Null: no study has
// a trial that fits.
Claim* NextInTurn(std::map<StudyId, Claim>& claims) {
  Claim* next = nullptr;
  for (auto& [id, claim] : claims) {
    if (!claim.next_is_trial()) continue;
    if (next == nullptr || claim.standing() < next->standing()) next = &claim;
  }
  return next;
}

}  // namespace

void WithholdBeyondParts(Pool& pool, const std::map<StudyId, StudyPart>& parts) {
  std::map<StudyId, int> left;
  for (const auto& [study, part] : parts) left[study] = part.slots;
  for (const Job& job : pool.jobs) {
    if (job.running) left[job.study] -= MinSlots(job);
  }
  std::vector<const Job*> waiting;
  for (const Job& job : pool.jobs) {
    if (!job.running && parts.contains(job.study)) waiting.push_back(&job);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const Job* a, const Job* b) { return a->order < b->order; });
  std::set<TrialId> withheld;
  for (const Job* job : waiting) {
    if (MinSlots(*job) > left[job->study]) {
      withheld.insert(job->id);
    } else {
      left[job->study] -= MinSlots(*job);
    }
  }
  std::erase_if(pool.jobs, [&](const Job& job) { return withheld.contains(job.id); });
}

bool StudiesCompete(const Pool& pool) {
  return std::any_of(pool.jobs.begin(), pool.jobs.end(),
                     [&pool](const Job& job) { return job.study != pool.jobs.front().study; });
}

std::map<StudyId, StudyPart> DivideAmongStudies(const Pool& pool, SpeedupCache& cache,
                                                const std::map<StudyId, StudyDemand>& demand,
                                                double fairness) {
  int free = 0;
  int node_slots = 1;
  for (const NodeCapacity& node : pool.nodes) {
    if (node.draining) continue;
    free += std::max(0, node.slots);
    node_slots = std::max(node_slots, node.slots);
  }
  std::map<StudyId, Claim> claims;
  const auto claim_of = [&](StudyId id) -> Claim& {
    const auto share = pool.shares.find(id);
    const auto owed = pool.owed.find(id);
    return claims
        .try_emplace(id, share == pool.shares.end() ? 1.0 : share->second,
                     owed == pool.owed.end() ? kNotOwed : owed->second, node_slots)
        .first->second;
  };
  for (const Job& job : pool.jobs) claim_of(job.study).Add(job, cache.CurveOf(job));
  for (const auto& [id, more] : demand) claim_of(id);
  for (auto& [id, claim] : claims) {
    const auto more = demand.find(id);
    claim.Start(more == demand.end() ? StudyDemand{} : more->second);
  }
  const bool turns = !pool.owed.empty();
  while (free > 0) {
    Claim* next = nullptr;
    double most = 0;
    for (auto& [id, claim] : claims) {
      while (claim.NextSlots() > free) {
        const int freed = turns ? 0 : SlotsFromOthers(claims, claim, claim.NextSlots() - free);
        if (freed == 0) {
          claim.Skip();
        } else {
          free += freed - claim.NextSlots();
          claim.Take();
        }
      }
      if (claim.NextSlots() == 0) continue;
      const double urgency = Urgency(claim, fairness);
      // Where two have nothing, the one that has waited longer is more urgent.
      if (next == nullptr || urgency > most) std::tie(next, most) = std::pair(&claim, urgency);
    }
    if (next == nullptr) break;
    if (Claim* const in_turn = turns ? NextInTurn(claims) : nullptr) next = in_turn;
    free -= next->NextSlots();
    next->Take();
  }
  std::map<StudyId, StudyPart> parts;
  for (const auto& [id, claim] : claims) parts.emplace(id, claim.Result());
  return parts;
}

}  // namespace espalier
