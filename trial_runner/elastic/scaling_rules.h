#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// What a scaling rule may look at.
struct ScalingContext {
  double scale = 1;     // global batch size / base batch size
  double sqr = 1;       // gradient noise, as in Gain()
  double var = 0;       // at the base batch size
  double progress = 0;  // scale-invariant steps done
};

// By what the learning rate is multiplied for one optimizer step of a larger (or smaller) batch
// than the one it was chosen for. Pure.
struct ScalingRule {
  std::string_view name;
  std::string_view summary;
  double (*factor)(const ScalingContext&);
};

// The rules, by name. A new one is one function and one row. LEGW (You et al. 2019), whose warm-up
// needs the progress that is already here and an option for its length, has its place here.
const std::vector<ScalingRule>& ScalingRules();

// An unknown name is answered with the known ones.
absl::StatusOr<ScalingRule> FindScalingRule(std::string_view name);

}  // namespace espalier
