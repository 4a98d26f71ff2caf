#include "tuner/core/terminators/models.h"

#include "tuner/core/samplers/gp/regret.h"

namespace espalier::terminators {

absl::Status CanBeModelled(const SearchSpace& space) {
  if (samplers::gp::HasAxes(space)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "goes by a model of the values over \"search_space\", which needs a parameter with more than "
      "one value");
}

PluginOption MinTrialsOption(double least) {
  return {.name = "min_trials",
          .default_value = 20,
          .least = least,
          .whole = true,
          .meaning = "complete trials without which a study is not ended"};
}

}  // namespace espalier::terminators
