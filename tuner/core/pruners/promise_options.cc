#include "tuner/core/pruners/promise_options.h"

#include "tuner/core/promise/promise.h"

namespace espalier {

std::vector<PluginOption> PromisePrunerOptions() {
  return {{.name = "threshold",
           .default_value = 0.3,
           .most = 1,
           .open = true,
           .meaning = "a trial is ended only if its chance to end among the best k is below this"},
          {.name = "risk",
           .default_value = 0.1,
           .most = 1,
           .open = true,
           .meaning = "and only if it and all live trials with no better chance are together "
                      "below this"},
          {.name = "cost_weight",
           .default_value = 0.5,
           .most = 1,
           .open = true,
           .meaning = "how much a trial's slowness counts"},
          {.name = "min_steps",
           .default_value = 1,
           .least = 1,
           .whole = true,
           .meaning = "first step at which a trial may be ended"},
          {.name = "min_trials",
           .default_value = 3,
           .least = 2,
           .whole = true,
           .meaning = "trials that must have reported before any is ended"},
          {.name = "best_k",
           .default_value = 0,
           .most = kMostBestK,
           .whole = true,
           .meaning = "k; 0: the study's own best_k"}};
}

}  // namespace espalier
