#pragma once

#include <string>

#include "tuner/base/status.h"

namespace espalier {

// Structured log lines (time, level, message) to stderr, from this level on.
void SetUpLog(const std::string& level);

// From now on to the end of this file instead: a live table owns the terminal.
absl::Status LogToFile(const std::string& path);

}  // namespace espalier
