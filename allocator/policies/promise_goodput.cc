#include "allocator/policies/promise_goodput.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "allocator/division/attribution.h"
#include "allocator/division/division.h"
#include "allocator/policies/pollux_objective.h"
#include "allocator/policies/settings.h"
#include "allocator/pool/admission.h"
#include "allocator/pool/study_shares.h"
#include "tuner/base/status.h"

namespace espalier {

namespace {

struct Settings {
  PromiseObjectiveOptions objective;
  double min_resize_interval_s = 2;
  double urgency = 0;
  double fairness = kStudyFairness;
  bool pollux_fitness = false;
};

// Rounds until the outcome, taken as the present, needs no further change; two or three are usual.
constexpr int kMaxRounds = 20;

// Urgency counts so many more jobs behind each than there are. Those that remain last then run side
// by side rather than one after the other: a lone job on the whole pool scales worst.
constexpr double kYetToCome = 2;

class PromiseGoodput : public Policy {
 public:
  explicit PromiseGoodput(const Settings& settings) : settings_(settings) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    cache_.KeepOnly(pool);
    parts_.clear();
    if (StudiesCompete(pool)) parts_ = DivideAmongStudies(pool, cache_, {}, settings_.fairness);
    Board board(pool, &cache_);
    SetWeights(board);
    Mend(board, !settings_.pollux_fitness);
    std::vector<std::vector<std::string>> lost;
    for (std::size_t j = 0; j < board.size(); ++j) lost.push_back(board.seat(j).lost);
    Divide(pool, board);
    if (!settings_.pollux_fitness) Settle(pool, board);
    for (std::size_t j = 0; j < board.size(); ++j) {
      Seat& seat = board.seat(j);
      seat.lost = std::move(lost[j]);
      seat.free_slots_taken = 0;
      seat.slots_from.clear();
    }
    AttributeChanges(board);
    return board.Decisions();
  }

 private:
  void SetWeights(Board& board) const;
  void Divide(const Pool& pool, Board& board);
  void Settle(const Pool& pool, Board& board);

  const Settings settings_;
  SpeedupCache cache_;
  std::map<StudyId, StudyPart> parts_;  // of the pool at hand; none where no studies compete
};

void PromiseGoodput::SetWeights(Board& board) const {
  for (std::size_t j = 0; j < board.size() && !parts_.empty(); ++j) {
    board.seat(j).weight *= parts_.at(board.seat(j).job->study).weight;
  }
  if (settings_.urgency == 0) return;
  std::vector<std::pair<double, std::size_t>> left;
  for (std::size_t j = 0; j < board.size(); ++j) {
    const Job& job = *board.seat(j).job;
    left.emplace_back(job.work_left_s > 0 ? job.work_left_s : job.attained_service, j);
  }
  std::sort(left.begin(), left.end());
  const double all = static_cast<double>(left.size()) + kYetToCome;
  for (std::size_t i = 0; i < left.size(); ++i) {
    board.seat(left[i].second).weight *=
        std::pow((all - static_cast<double>(i)) / all, settings_.urgency);
  }
}

// Admits those who wait, then divides among all.
void PromiseGoodput::Divide(const Pool& pool, Board& board) {
  if (settings_.pollux_fitness) {
    PolluxObjective objective(board, pool);
    BestDivision(board, objective, 0,
                 {.polish_steps = 2e7, .polish_draws = 500, .near_bound = 1e-6});
    return;
  }
  AdmitWaiting(board, /*reclaim=*/true);
  PromiseObjective objective(board, settings_.objective);
  BestDivision(board, objective, settings_.min_resize_interval_s);
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
    Mend(again, !settings_.pollux_fitness);
    Divide(next, again);
    bool same = true;
    for (std::size_t j = 0; j < board.size(); ++j) same &= again.AsShown(j, again.seat(j).shares);
    if (same) return;
    // First all places are given up, so that no node is overfull on the way.
    for (std::size_t j = 0; j < board.size(); ++j) board.Assign(j, {});
    for (std::size_t j = 0; j < board.size(); ++j) board.Assign(j, again.seat(j).shares);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> MakePromiseGoodput(const Options& options) {
  Settings settings;
  const std::array known = {SettingRow{"min_gain", &settings.objective.min_gain},
                            SettingRow{"hysteresis", &settings.objective.hysteresis},
                            SettingRow{"min_resize_interval_s", &settings.min_resize_interval_s},
                            SettingRow{"horizon_s", &settings.objective.horizon_s},
                            SettingRow{"urgency", &settings.urgency},
                            SettingRow{"fairness", &settings.fairness, -100, 1}};
  ESPALIER_RETURN_IF_ERROR(ReadSettings("promise_goodput", options, known));
  return std::make_unique<PromiseGoodput>(settings);
}

std::unique_ptr<Policy> MakePolluxFitnessSearch() {
  Settings settings;
  settings.pollux_fitness = true;
  return std::make_unique<PromiseGoodput>(settings);
}

}  // namespace espalier
