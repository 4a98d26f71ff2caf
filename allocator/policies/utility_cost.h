#pragma once

#include "absl/status/statusor.h"
#include "allocator/policies/policy.h"

namespace espalier {

// Utility against cost (Or, Zhang, Freedman, MLSys 2020): a trial on k slots takes d more while
// what its earlier end is worth exceeds what the slots cost more until then,
// U(T(k+d)) - U(T(k)) > P * ((k+d) * T(k+d) - k * T(k)) with T(k) = work left / R(k). Utility is
// linear here, U(T) = -utility * T, so that the work left divides out. See scale_out.h for the
// pool. Options: utility (4) of a second, price (1) of a slot's second, step (1), d.
absl::StatusOr<std::unique_ptr<Policy>> MakeUtilityCost(const Options& options);

}  // namespace espalier
