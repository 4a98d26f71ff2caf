#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/pruners/curve_reading.h"
#include "tuner/core/pruners/pruner.h"
#include "tuner/core/pruners/rungs.h"

namespace espalier::pruners {

namespace {

struct Halving {
  std::int64_t min_steps = 0;  // 0: a hundredth of the first complete trial's
  std::int64_t eta = 4;
  std::int64_t min_early_stopping_rate = 0;
  std::int64_t bootstrap_count = 0;
};

constexpr std::int64_t kShareOfAFullTrial = 100;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Where the first rung is, and from when on trials are judged.
struct Start {
  std::int64_t first_rung = 1;
  std::optional<Time> after{};  // only what is reported later counts; none: all of it
};

// A report that is the first of its trial at a rung, or at several.
struct Arrival {
  const IntermediateValue* point = nullptr;
  std::int64_t trial_number = 0;
  std::size_t first_rung = 0;
  std::size_t last_rung = 0;
};

// The costs of those that have come to a rung so far, parted at the bar.
class Standing {
 public:
  explicit Standing(std::int64_t eta) : eta_(eta) {}

  // Whether one that comes with this cost is among the best 1/eta then, at least one. Ties are.
  bool Take(double cost) {
    ++count_;
    others_.insert(cost);
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(count_ / eta_, 1));
    const bool grows = best_.size() < most;
    if (grows || *others_.begin() < *best_.rbegin()) {
      best_.insert(others_.extract(others_.begin()));
      if (!grows) others_.insert(best_.extract(std::prev(best_.end())));
    }
    return cost <= bar();
  }
  std::int64_t count() const { return count_; }
  double bar() const { return *best_.rbegin(); }

 private:
  std::int64_t eta_;
  std::int64_t count_ = 0;
  std::multiset<double> best_;
  std::multiset<double> others_;
};

// Asynchronous successive halving (Li et al., MLSys 2020), stopping, as Optuna's
// SuccessiveHalvingPruner does it. Unlike "asha", a trial is judged at its first report at or after
// a rung, at all rungs that it passes with that report, one after another; whoever falls at one
// does not count at the next. While fewer than eta trials have come to a rung only the best of them
// goes on, and of the first bootstrap_count none does. A first rung that nobody names is a
// hundredth of what the first complete trial has reported; until that has ended none is judged, and
// what was reported before then does not count. (There the peer looks once in each process, and
// takes the longest of those that are complete by then.)
//
// What each trial met at its rungs follows from the curves: all arrivals are gone through in their
// order in time. Verdicts are Optuna's, but for a value that is an infinity on the better side:
// here it ends a trial as NaN does.
class SuccessiveHalving : public Pruner {
 public:
  explicit SuccessiveHalving(Halving halving) : halving_(halving) {}

  PruneVerdict Judge(const PrunerInput& input) const override {
    if (input.trial.points.empty()) return {};
    if (auto reason = NoValueCounts(input.direction, input.trial)) {
      return {PruneAction::kPrune, *std::move(reason)};
    }
    const std::optional<Start> start = StartOf(input.others);
    if (!start) return {};
    std::vector<Arrival> arrivals;
    AddArrivals(*start, input.trial, arrivals);
    if (arrivals.empty() || arrivals.back().point != &input.trial.points.back()) return {};
    const Arrival newest = arrivals.back();
    arrivals.pop_back();
    for (const Curve& other : input.others) AddArrivals(*start, other, arrivals);
    std::ranges::sort(arrivals, {}, [](const Arrival& arrival) {
      return std::tuple(arrival.point->at, arrival.trial_number, arrival.point->step);
    });
    std::vector<Standing> rungs(newest.last_rung + 1, Standing(halving_.eta));
    for (const Arrival& arrival : arrivals) Meet(input.direction, arrival, rungs);
    const std::optional<std::size_t> fell = Meet(input.direction, newest, rungs);
    if (!fell) return {};
    return Fallen(*start, input, *fell, rungs[*fell]);
  }

 private:
  std::optional<Start> StartOf(std::span<const Curve> others) const {
    Start start;
    std::int64_t first = halving_.min_steps;
    if (first == 0) {
      for (const Curve& other : others) {
        if (!other.complete || other.points.empty()) continue;
        const std::int64_t steps =
            std::max<std::int64_t>(other.points.back().step / kShareOfAFullTrial, 1);
        if (!start.after || other.ended_at < *start.after) {
          start.after = other.ended_at;
          first = steps;
        } else if (other.ended_at == *start.after) {
          first = std::max(first, steps);
        }
      }
      if (!start.after) return std::nullopt;
    }
    for (std::int64_t rate = 0; rate < halving_.min_early_stopping_rate; ++rate) {
      first = Next(first);
      if (first == kNever) return std::nullopt;
    }
    start.first_rung = first;
    return start;
  }

  std::int64_t Next(std::int64_t rung) const {
    return rung > kNever / halving_.eta ? kNever : rung * halving_.eta;
  }

  void AddArrivals(const Start& start, const Curve& curve, std::vector<Arrival>& arrivals) const {
    if (curve.points.empty()) return;
    std::int64_t rung = start.first_rung;
    std::size_t number = 0;
    while (rung != kNever && rung <= curve.points.back().step) {
      const IntermediateValue* point = FirstPointFrom(curve, rung);
      const IntermediateValue* const end = curve.points.data() + curve.points.size();
      while (start.after && point != end && point->at <= *start.after) ++point;
      if (point == end) return;
      Arrival& arrival = arrivals.emplace_back();
      arrival.point = point;
      arrival.trial_number = curve.trial_number;
      arrival.first_rung = number;
      for (; rung != kNever && rung <= point->step; rung = Next(rung)) arrival.last_rung = number++;
    }
  }

  // The rung of the arrival's at which its trial falls, if it does.
  std::optional<std::size_t> Meet(Direction direction, const Arrival& arrival,
                                  std::vector<Standing>& rungs) const {
    for (std::size_t r = arrival.first_rung; r <= arrival.last_rung && r < rungs.size(); ++r) {
      if (!Counts(direction, arrival.point->value)) return r;
      const bool among_best = rungs[r].Take(CostOf(direction, arrival.point->value));
      if (rungs[r].count() <= halving_.bootstrap_count || !among_best) return r;
    }
    return std::nullopt;
  }

  PruneVerdict Fallen(const Start& start, const PrunerInput& input, std::size_t fell,
                      const Standing& rung) const {
    std::int64_t step = start.first_rung;
    for (std::size_t r = 0; r < fell; ++r) step = Next(step);
    if (std::string reason = NoValueAt(step, input); !reason.empty()) {
      return {PruneAction::kPrune, std::move(reason)};
    }
    const IntermediateValue& last = input.trial.points.back();
    const std::string what = absl::StrFormat("%.4g at step %d", last.value, last.step);
    if (rung.count() <= halving_.bootstrap_count) {
      return {
          PruneAction::kPrune,
          absl::StrFormat("%s is one of the first %d at the rung of step %d, which none survives",
                          what, halving_.bootstrap_count, step)};
    }
    return {PruneAction::kPrune,
            absl::StrFormat(
                "%s is not among the best 1/%d of %d trials at the rung of step %d (needs %.4g)",
                what, halving_.eta, rung.count(), step,
                input.direction == Direction::kMinimize ? rung.bar() : -rung.bar())};
  }

  Halving halving_;
};

absl::StatusOr<std::unique_ptr<Pruner>> MakeSuccessiveHalving(const OptionValues& options) {
  const Halving halving{.min_steps = options.Whole("min_steps"),
                        .eta = options.Whole("eta"),
                        .min_early_stopping_rate = options.Whole("min_early_stopping_rate"),
                        .bootstrap_count = options.Whole("bootstrap_count")};
  if (halving.bootstrap_count > 0 && halving.min_steps == 0) {
    return OptionNeeds("bootstrap_count", "0 where min_steps is 0",
                       static_cast<double>(halving.bootstrap_count));
  }
  return std::make_unique<SuccessiveHalving>(halving);
}

}  // namespace

PluginRow<Pruner> SuccessiveHalvingRow() {
  return {
      {.name = "successive_halving",
       .summary = "ends a trial that is not among the best 1/eta at a rung, as Optuna does",
       .options = {{.name = "min_steps",
                    .default_value = 0,
                    .whole = true,
                    .meaning = "first rung; 0: a hundredth of the first complete trial's steps"},
                   {.name = "eta",
                    .default_value = 4,
                    .least = 2,
                    .whole = true,
                    .meaning = "factor between rungs; the best 1/eta of the trials there go on"},
                   {.name = "min_early_stopping_rate",
                    .default_value = 0,
                    .whole = true,
                    .meaning = "so many rungs are left out at the beginning"},
                   {.name = "bootstrap_count",
                    .default_value = 0,
                    .whole = true,
                    .meaning = "the first so many trials at each rung end there"}}},
      MakeSuccessiveHalving};
}

}  // namespace espalier::pruners
