#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "allocator/allocation/best_allocation.h"
#include "allocator/allocation/explain_changes.h"
#include "allocator/policies/policy.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/study_shares.h"

namespace espalier::policies {

namespace {

struct PromiseGoodputSettings {
  PromiseObjectiveOptions objective;
  double min_resize_interval_s;
  double urgency;
  double fairness;
};

// Rounds until the outcome, taken as the present, needs no further change; two or three are usual.
constexpr int kMaxRounds = 20;

// Urgency counts so many more jobs behind each than there are. Those that remain last then run side
// by side rather than one after the other: a lone job on the whole pool scales worst.
constexpr double kYetToCome = 2;

// The allocation of slots with the greatest sum of promise-weighted speedup, less what moving
// costs. What each trial would gain on each number of slots is worked out from its goodput model; a
// multiple-choice knapsack says how many each should have; these are placed with as few changes as
// possible; and exchanges between trials and nodes better what did not fit as planned. Exact or
// nearly so where that can be checked, and a few milliseconds for hundreds of trials.
//
// Waiting trials come first, in order (one more trial scales linearly), and take slots back from
// the trials that miss them least; no running trial goes below its minimum for that. A move must
// pay for the pause it costs: the trial's own measured one, over the time the move will last.
//
// The weight is promise x urgency. Urgency serves plain jobs, all of equal promise, whose mean
// completion time counts: finishing one job earlier spares all that are behind it nothing, but
// work done on it delays those that could end sooner; in the optimum for jobs that all scale alike
// (Berg, Vesilo, Harchol-Balter, "heSRPT", 2020) a job's weight grows with the number of jobs that
// have as much or more left to do. Here it is that number's share of all jobs, both counting two
// that are yet to come, to the power of `urgency`. What is left is work_left_s, or where that is
// unknown what the job has had so far.
class PromiseGoodput : public Policy {
 public:
  explicit PromiseGoodput(const PromiseGoodputSettings& settings) : settings_(settings) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    cache_.KeepOnly(pool);
    parts_.clear();
    if (StudiesCompete(pool)) parts_ = DivideAmongStudies(pool, cache_, {}, settings_.fairness);
    Board board(pool, &cache_);
    SetWeights(board);
    Mend(board, /*reclaim=*/true);
    std::vector<std::vector<std::string>> lost;
    for (std::size_t j = 0; j < board.size(); ++j) lost.push_back(board.holder(j).lost);
    Divide(board);
    Settle(pool, board);
    for (std::size_t j = 0; j < board.size(); ++j) {
      Holder& holder = board.holder(j);
      holder.lost = std::move(lost[j]);
      holder.free_slots_taken = 0;
      holder.slots_from.clear();
    }
    ExplainChanges(board);
    return board.Decisions();
  }

  double study_fairness() const override { return settings_.fairness; }

 private:
  void SetWeights(Board& board) const;
  void Divide(Board& board);
  void Settle(const Pool& pool, Board& board);

  const PromiseGoodputSettings settings_;
  SpeedupCache cache_;
  std::map<StudyId, StudyPart> parts_;  // of the pool at hand; none where no studies compete
};

void PromiseGoodput::SetWeights(Board& board) const {
  for (std::size_t j = 0; j < board.size() && !parts_.empty(); ++j) {
    board.holder(j).weight *= parts_.at(board.holder(j).job->study).weight;
  }
  if (settings_.urgency == 0) return;
  std::vector<std::pair<double, std::size_t>> left;
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Job& job = *board.holder(j).job;
    left.emplace_back(job.work_left_s > 0 ? job.work_left_s : job.attained_service, j);
  }
  std::sort(left.begin(), left.end());
  const double all = static_cast<double>(left.size()) + kYetToCome;
  for (std::size_t i = 0; i < left.size(); ++i) {
    board.holder(left[i].second).weight *=
        std::pow((all - static_cast<double>(i)) / all, settings_.urgency);
  }
}

// Admits the trials that wait, then divides the slots among all.
void PromiseGoodput::Divide(Board& board) {
  AdmitWaiting(board, /*reclaim=*/true);
  PromiseObjective objective(board, settings_.objective);
  BestAllocation(board, objective, settings_.min_resize_interval_s);
}

// What is decided must be what would be decided again: takes the outcome for the present until
// nothing changes any more.
void PromiseGoodput::Settle(const Pool& pool, Board& board) {
  Pool next = pool;
  for (int round = 0; round < kMaxRounds; ++round) {
    const auto decisions = board.Decisions();
    if (decisions.empty()) return;
    std::map<TrialId, const Placement*> changed;
    for (const AllocationDecision& d : decisions) changed[d.trial] = &d.placement;
    for (std::size_t j = 0; j < next.jobs.size(); ++j) {
      Job& job = next.jobs[j];
      const auto at = changed.find(job.id);
      job.current = at == changed.end() ? pool.jobs[j].current : *at->second;
      job.running = !job.current.empty();
    }
    Board again(next, &cache_);
    SetWeights(again);
    Mend(again, /*reclaim=*/true);
    Divide(again);
    bool same = true;
    for (std::size_t j = 0; j < board.size(); ++j) same &= again.AsShown(j, again.holder(j).shares);
    if (same) return;
    // First all places are given up, so that no node is overfull on the way.
    for (std::size_t j = 0; j < board.size(); ++j) board.Assign(j, {});
    for (std::size_t j = 0; j < board.size(); ++j) board.Assign(j, again.holder(j).shares);
  }
}

}  // namespace

PluginRow<Policy> PromiseGoodputRow() {
  return {
      {.name = "promise_goodput",
       .summary = "maximizes promise-weighted goodput, by a knapsack over each trial's sizes",
       .options =
           {{.name = "min_gain",
             .default_value = PromiseObjectiveOptions{}.min_gain,
             .meaning = "least speedup that a slot must bring; half as much to keep it"},
            {.name = "hysteresis",
             .default_value = PromiseObjectiveOptions{}.hysteresis,
             .meaning = "how much more a trial's loss counts than another's gain"},
            {.name = "min_resize_interval_s",
             .default_value = 2,
             .meaning =
                 "seconds for which a resized trial is left alone, unless another is waiting"},
            {.name = "horizon_s",
             .default_value = PromiseObjectiveOptions{}.horizon_s,
             .meaning = "seconds within which a move must pay off, or 15 times its pause if that "
                        "is longer"},
            {.name = "urgency",
             .default_value = 0,
             .meaning = "weight of having little left to do: 0 for tuning, up to 1 for plain jobs"},
            {.name = "fairness",
             .default_value = kStudyFairness,
             .least = -100,
             .most = 1,
             .meaning = "exponent of the power mean of the studies' goodput; lower is fairer"}}},
      [](const OptionValues& options) {
        PromiseGoodputSettings settings;
        settings.objective.min_gain = options["min_gain"];
        settings.objective.hysteresis = options["hysteresis"];
        settings.objective.horizon_s = options["horizon_s"];
        settings.min_resize_interval_s = options["min_resize_interval_s"];
        settings.urgency = options["urgency"];
        settings.fairness = options["fairness"];
        return std::make_unique<PromiseGoodput>(settings);
      }};
}

}  // namespace espalier::policies
