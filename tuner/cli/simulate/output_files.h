#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"

namespace espalier {

// Refuses files that cannot be written, or are one and the same, before what may take minutes.
// Empty: none is asked for.
absl::Status CheckOutputFiles(const std::string& json, const std::string& decisions,
                              const std::string& html);

// Names of pages, by those of their variants: what a file's name may have, and each once.
class PageNames {
 public:
  std::string Next(const std::string& variant);

 private:
  std::map<std::string, int> used_;
};

}  // namespace espalier
