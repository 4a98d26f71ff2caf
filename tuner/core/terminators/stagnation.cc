#include <algorithm>

#include "absl/strings/str_format.h"
#include "tuner/core/terminators/complete.h"

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

  TerminatorVerdict Judge(const TerminatorInput& input) const override {
    // Of long studies this is asked often: nothing is put in order.
    std::int64_t complete = 0;
    const Observation* best = nullptr;
    for (const Observation& trial : input.ended) {
      if (!IsComplete(input, trial)) continue;
      ++complete;
      if (best == nullptr || Better(input.direction, trial.value, best->value) ||
          (trial.value == best->value && EndedBefore(trial, *best))) {
        best = &trial;
      }
    }
    if (complete < min_trials_ || complete <= trials_) return {};
    const auto since = std::ranges::count_if(input.ended, [&input, best](const Observation& trial) {
      return IsComplete(input, trial) && EndedBefore(*best, trial);
    });
    if (since <= trials_) return {};
    return {true, absl::StrFormat("%d complete trials have brought nothing better than %.6g, of "
                                  "trial %d",
                                  since, best->value, best->trial_number)};
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
