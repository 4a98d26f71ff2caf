#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// What `tuner simulate pollux` accepts: recorded jobs instead of a study.
struct SimulateClusterArguments {
  std::string folder;  // empty: that of the installation
  std::string workload;
  std::vector<std::string> policies;
  int nodes = 16;
  double resize_s = 30;
  double interval_s = 60;
  bool on_events = false;
  bool requested = false;
  std::string json_file;
  std::string decisions_file;
  std::string html_file;
};

// Simulates, prints the figures, and writes the files that were asked for.
absl::Status SimulateRecordedCluster(const SimulateClusterArguments& arguments);

}  // namespace espalier
