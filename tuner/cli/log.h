#pragma once

#include <string>

#include "base/status.h"

namespace espalier {

// Structured log lines (time, level, message) to stderr, from this level on.
void SetUpLog(const std::string& level);

// Appends log lines to this file from now on, because a live table owns the terminal.
absl::Status LogToFile(const std::string& path);

}  // namespace espalier
