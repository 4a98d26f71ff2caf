#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/core/pruners/pruner.h"

namespace espalier {

// Keeps every trial to its end, whatever it reports. Takes no options.
absl::StatusOr<std::unique_ptr<Pruner>> MakeNone(const Options& options);

}  // namespace espalier
