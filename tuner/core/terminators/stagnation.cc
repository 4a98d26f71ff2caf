#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "tuner/core/terminators/terminator.h"

namespace espalier::terminators {

namespace {

// Ends a study when more than `trials` complete trials have come, one after another, without a
// better value than the best. Trials that failed, were pruned or have no number count neither way.
// What came first is told by when trials ended, so that a best trial that took long is not old when
// it comes. Of trials that end in the order of their numbers this is what Optuna's Terminator says
// with BestValueStagnationEvaluator(max_stagnation_trials) and min_n_trials.
class Stagnation : public Terminator {
 public:
  Stagnation(std::int64_t trials, std::int64_t min_trials)
      : trials_(trials), min_trials_(min_trials) {}

  std::optional<std::string> Judge(const TerminatorInput& input) const override {
    std::vector<const Observation*> complete;
    for (const Observation& trial : input.ended) {
      if (!trial.pruned && Counts(input.direction, trial.value)) complete.push_back(&trial);
    }
    const auto count = static_cast<std::int64_t>(complete.size());
    if (count == 0 || count < min_trials_ || count <= trials_) return std::nullopt;
    std::ranges::sort(complete, {}, [](const Observation* trial) {
      return std::tuple(trial->at, trial->trial_number);
    });
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < count; ++i) {
      const auto value = [&](std::int64_t n) {
        return complete[static_cast<std::size_t>(n)]->value;
      };
      if (Better(input.direction, value(i), value(best))) best = i;
    }
    const std::int64_t since = count - 1 - best;
    if (since <= trials_) return std::nullopt;
    const Observation& leader = *complete[static_cast<std::size_t>(best)];
    return absl::StrFormat("%d complete trials have brought nothing better than %.6g, of trial %d",
                           since, leader.value, leader.trial_number);
  }

 private:
  std::int64_t trials_;
  std::int64_t min_trials_;
};

}  // namespace

PluginRow<Terminator> StagnationRow() {
  return {{.name = "stagnation",
           .summary = "ends a study whose complete trials bring nothing better any more",
           .options = {{.name = "trials",
                        .default_value = 30,
                        .whole = true,
                        .meaning = "complete trials in a row that may bring nothing better"},
                       {.name = "min_trials",
                        .default_value = 20,
                        .least = 1,
                        .whole = true,
                        .meaning = "complete trials without which a study is not ended"}}},
          [](const OptionValues& options) {
            return std::make_unique<Stagnation>(options.Whole("trials"),
                                                options.Whole("min_trials"));
          }};
}

}  // namespace espalier::terminators
