#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace espalier {

// By option; empty: none is asked for.
using OutputFile = std::pair<const char*, std::string>;

// Refuses files that cannot be written, or are one and the same, before what may take minutes.
absl::Status CheckOutputFiles(const std::vector<OutputFile>& files);

// Names of pages, by those of their variants: what a file's name may have, and each once.
class PageNames {
 public:
  std::string Next(const std::string& variant);

 private:
  std::map<std::string, int> used_;
};

}  // namespace espalier
