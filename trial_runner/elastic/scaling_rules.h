#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace espalier {

// What a scaling rule may look at.
struct ScalingContext {
  std::int64_t group = 0;  // the parameter group for which the rate is asked
  double scale = 1;        // global batch size / base batch size
  double sqr = 1;       // of that group: |true gradient|^2, and the gradient's variance at the base
  double var = 0;       // batch size, as in Gain()
  double progress = 0;  // scale-invariant steps done
  double base_batch_size = 1;
  double dataset_size = 1;  // samples of an epoch
};

// The factor by which the learning rate is multiplied for one optimizer step with a larger (or
// smaller) batch than the one it was chosen for. Pure: the same context gives the same factor on
// each replica. A rule of your own is one class, handed to AdaptiveDataParallel.
class ScalingRule {
 public:
  virtual ~ScalingRule() = default;
  virtual double Factor(const ScalingContext& context) const = 0;
};

// A rule that is known by name. A new one is one function or class and one row.
struct ScalingRuleRow {
  std::string_view name;
  std::string_view summary;
  // `argument` is what stood behind the colon of "name:argument", or empty.
  absl::StatusOr<std::shared_ptr<const ScalingRule>> (*make)(const std::string& argument);
};
const std::vector<ScalingRuleRow>& ScalingRules();

// "adascale", "linear", "legw:2.5". An unknown name is answered with the known ones.
absl::StatusOr<std::shared_ptr<const ScalingRule>> FindScalingRule(std::string_view text);

}  // namespace espalier
