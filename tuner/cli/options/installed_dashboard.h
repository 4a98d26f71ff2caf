#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// The folder of the optuna-dashboard that is installed for the `python3` of PATH, which holds its
// pages. The error says how to install it.
absl::StatusOr<std::string> InstalledDashboard();

}  // namespace espalier
