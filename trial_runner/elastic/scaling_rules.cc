#include "trial_runner/elastic/scaling_rules.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "trial_runner/elastic/noise_scale.h"

namespace espalier {
namespace {

double AdaScale(const ScalingContext& c) { return Gain(c.sqr, c.var, c.scale); }
double AdamScale(const ScalingContext& c) { return std::sqrt(Gain(c.sqr, c.var, c.scale)); }
double Linear(const ScalingContext& c) { return c.scale; }
double SquareRoot(const ScalingContext& c) { return std::sqrt(c.scale); }
double None(const ScalingContext&) { return 1.0; }

}  // namespace

const std::vector<ScalingRule>& ScalingRules() {
  static const std::vector<ScalingRule> kRules{
      {"adascale", "by the gain that the gradient noise allows (Johnson et al. 2020)", AdaScale},
      {"adamscale", "square root of the gain, for Adam and its kin", AdamScale},
      {"linear", "by the batch size", Linear},
      {"sqrt", "by the square root of the batch size", SquareRoot},
      {"none", "not at all", None},
  };
  return kRules;
}

absl::StatusOr<ScalingRule> FindScalingRule(std::string_view name) {
  std::string known;
  for (const ScalingRule& rule : ScalingRules()) {
    if (rule.name == name) return rule;
    known.append(known.empty() ? "" : ", ").append(rule.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("scaling rule \"", std::string(name), "\" is unknown: known are ", known));
}

}  // namespace espalier
