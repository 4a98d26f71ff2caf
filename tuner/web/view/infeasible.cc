#include "tuner/web/view/infeasible.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tuner/core/state/study_facts.h"

namespace espalier::view {

std::optional<bool> Infeasible(const StudySpec& spec, const Trial& trial) {
  const std::vector<double>& kept = *trial.constraints;
  if (kept.empty()) return std::nullopt;
  if (Breaks(spec, trial)) return true;
  const bool untold = std::ranges::any_of(kept, [](double one) { return std::isnan(one); });
  return untold ? std::nullopt : std::optional(false);
}

}  // namespace espalier::view
