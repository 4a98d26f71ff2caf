#pragma once

#include <limits>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "tuner/base/options.h"

namespace espalier {

// One numeric option of a policy.
struct SettingRow {
  std::string_view name;
  double* value;  // keeps its default where the options do not name it
  double least = 0;
  double most = std::numeric_limits<double>::infinity();
};

// Fills `known` from `options`. An unknown name, a value out of range or one that is not finite is
// an InvalidArgument that names policy, option, value and what would be right.
absl::Status ReadSettings(std::string_view policy, const Options& options,
                          std::span<const SettingRow> known);

}  // namespace espalier
