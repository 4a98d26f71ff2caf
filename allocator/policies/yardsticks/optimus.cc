#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/slot_ledger.h"
#include "allocator/pool/speedup.h"

namespace espalier::policies {

namespace {

constexpr double kForever = 1e15;  // seconds; what cannot run at all needs so long

struct Growth {
  const Job* job;
  SpeedupCurve speedup;
  int slots = 0;
  double gain_s = 0;  // of one more slot
  bool kept = false;

  explicit Growth(const Job& j) : job(&j), speedup(j) {}
};

// So many slots of the placement, or all: first where it has most.
Placement PartOf(const Placement& placement, int slots) {
  std::vector<std::pair<NodeId, int>> nodes(placement.begin(), placement.end());
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Placement part;
  for (const auto& [node, held] : nodes) {
    const int taken = std::min(held, slots);
    if (taken > 0) part[node] = taken;
    slots -= taken;
  }
  return part;
}

class AllocationSearch {
 public:
  AllocationSearch(const Pool& pool, bool share_spanned) : ledger_(pool, share_spanned) {
    for (const NodeCapacity& node : pool.nodes) {
      slots_per_node_ = std::max(slots_per_node_, node.slots);
    }
    left_ = ledger_.usable();
    for (const Job* job : InOrder(pool)) {
      if (job->joining && ledger_.MayKeep(*job)) {
        ledger_.Take(job->current);
        left_ -= TotalSlots(job->current);
      } else {
        candidates_.emplace_back(*job);
      }
    }
  }

  std::vector<AllocationDecision> Run() {
    GiveMinima();
    while (left_ > 0 && GiveOne()) {
    }
    return PlaceAll();
  }

 private:
  int Cap(const Growth& c) const {
    const auto& known = c.job->known_step_s;
    if (!known) return GrowthCap(*c.job);
    return std::max(MinSlots(*c.job), std::min(MaxSlots(*c.job), static_cast<int>(known->size())));
  }
  // Seconds that one slot more than `slots` saves to the job's end.
  double Gain(Growth& c, int slots);
  void Update(Growth& c) { c.gain_s = c.slots + 1 > Cap(c) || left_ < 1 ? 0 : Gain(c, c.slots); }
  void GiveMinima();
  bool GiveOne();
  std::vector<AllocationDecision> PlaceAll();
  Growth* Place(std::vector<std::pair<const Job*, AllocationDecision>>& made);
  std::optional<Placement> FindPlace(const Growth& c, const SlotLedger& ledger) const;
  std::string Reason(const Growth& c, const Placement& placement, const std::string& loss) const;

  SlotLedger ledger_;
  std::vector<Growth> candidates_;
  int left_ = 0;
  int slots_per_node_ = 1;
};

double AllocationSearch::Gain(Growth& c, int slots) {
  const auto index = static_cast<std::size_t>(slots);
  if (const auto& known = c.job->known_step_s; known && index < known->size()) {
    return ((*known)[index - 1] - (*known)[index]) * c.job->steps_left;
  }
  const double work_s = c.job->work_left_s > 0 ? c.job->work_left_s : 1;
  const auto left_s = [&](int k) {
    const double speedup = c.speedup.At((k + slots_per_node_ - 1) / slots_per_node_, k);
    return speedup > 0 ? std::min(work_s / speedup, kForever) : kForever;
  };
  return left_s(slots) - left_s(slots + 1);
}

void AllocationSearch::GiveMinima() {
  std::stable_sort(candidates_.begin(), candidates_.end(), [](const Growth& a, const Growth& b) {
    return MinSlots(*a.job) < MinSlots(*b.job);
  });
  for (Growth& c : candidates_) {
    if (MinSlots(*c.job) > left_) continue;
    c.slots = MinSlots(*c.job);
    left_ -= c.slots;
    Update(c);
  }
}

bool AllocationSearch::GiveOne() {
  const auto best =
      std::max_element(candidates_.begin(), candidates_.end(),
                       [](const Growth& a, const Growth& b) { return a.gain_s < b.gain_s; });
  if (best == candidates_.end() || !(best->gain_s > 0)) return false;
  ++best->slots;
  Update(*best);
  --left_;
  return true;
}

// Where the spanning rule leaves no room for all its slots, a job makes do with fewer. On as many
// as it has it stays where it is.
std::optional<Placement> AllocationSearch::FindPlace(const Growth& c,
                                                     const SlotLedger& ledger) const {
  for (int slots = c.slots; slots >= MinSlots(*c.job) && slots > 0; --slots) {
    auto placement = ledger.Place(slots);
    if (!placement) continue;
    const bool stays = slots == TotalSlots(c.job->current) && ledger.MayKeep(*c.job);
    return stays ? c.job->current : *std::move(placement);
  }
  return std::nullopt;
}

// Places all but those that are kept. Returns one that runs, is to go on, and finds no place; null:
// there is none.
Growth* AllocationSearch::Place(std::vector<std::pair<const Job*, AllocationDecision>>& made) {
  SlotLedger ledger = ledger_;
  made.clear();
  for (Growth& c : candidates_) {
    if (c.kept) continue;
    const std::string loss = ledger.MayKeep(*c.job) ? "" : ledger.Loss(*c.job);
    const Placement placement = FindPlace(c, ledger).value_or(Placement{});
    const bool enough = TotalSlots(c.job->current) >= c.job->min_slots;
    if (placement.empty() && c.slots > 0 && enough && ledger_.MayKeep(*c.job)) return &c;
    ledger.Take(placement);
    if (placement == c.job->current) continue;
    made.emplace_back(c.job, AllocationDecision{c.job->id, placement, Reason(c, placement, loss)});
  }
  return nullptr;
}

std::vector<AllocationDecision> AllocationSearch::PlaceAll() {
  for (Growth& c : candidates_) {
    c.kept = c.slots == TotalSlots(c.job->current) && ledger_.MayKeep(*c.job);
    if (c.kept) ledger_.Take(c.job->current);
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Growth& a, const Growth& b) { return a.slots < b.slots; });
  std::vector<std::pair<const Job*, AllocationDecision>> made;
  // Where the spanning rule leaves too little room, who runs keeps what it has: those that wait
  // would else take its place, and it theirs, for ever.
  std::vector<std::pair<const Job*, AllocationDecision>> shrunk;
  while (Growth* displaced = Place(made)) {
    displaced->kept = true;
    const Placement& current = displaced->job->current;
    const Placement rest = PartOf(current, displaced->slots);
    ledger_.Take(rest);
    if (rest == current) continue;
    shrunk.emplace_back(displaced->job,
                        AllocationDecision{displaced->job->id, rest, Reason(*displaced, rest, "")});
  }
  made.insert(made.end(), shrunk.begin(), shrunk.end());
  std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->order, a.first->id) < std::pair(b.first->order, b.first->id);
  });
  std::vector<AllocationDecision> decisions;
  for (auto& [job, decision] : made) decisions.push_back(std::move(decision));
  return decisions;
}

std::string AllocationSearch::Reason(const Growth& c, const Placement& placement,
                                     const std::string& loss) const {
  const std::string why = loss.empty() ? "" : absl::StrCat(", ", loss);
  const int slots = TotalSlots(placement);
  if (slots == 0) return absl::StrCat("pauses: no slots are left for it", why);
  const int before = TotalSlots(c.job->current);
  if (before == 0) return absl::StrCat("starts on ", SlotsText(slots), why);
  return absl::StrFormat("goes from %d to %s: one more would save %.0f s%s", before,
                         SlotsText(slots), c.gain_s, why);
}

// Optimus (Peng et al., EuroSys 2018) as the Pollux paper compares itself with it: every job gets
// its minimum, and each further slot goes where it shortens the remaining time most; jobs whose
// number of slots changed are placed anew, smallest first, on the nodes with the most free slots.
// The time of a step is the job's known one (the paper's oracle), else by its goodput model, else
// linear in the slots. No regard for promise, nor for what a resize costs. Smaller minima go before
// earlier submissions.
class Optimus : public Policy {
 public:
  explicit Optimus(bool share_spanned) : share_spanned_(share_spanned) {}
  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    return AllocationSearch(pool, share_spanned_).Run();
  }
  bool preempts() const override { return true; }

 private:
  bool share_spanned_;
};

}  // namespace

PluginRow<Policy> OptimusRow() {
  return {{.name = "optimus",
           .summary = "each slot goes to the trial whose end it brings forward most",
           .options = {{.name = "share_spanned",
                        .default_value = 0,
                        .most = 1,
                        .meaning =
                            "above 0: jobs that span nodes may share a node, as in the original"}}},
          [](const OptionValues& options) {
            return std::make_unique<Optimus>(options["share_spanned"] != 0);
          }};
}

}  // namespace espalier::policies
