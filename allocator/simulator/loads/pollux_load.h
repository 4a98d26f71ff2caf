#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/simulator/cluster.h"

namespace espalier {

// Reads a workload of the Pollux simulator, e.g. "workload-1", and the recorded applications it
// names from a folder laid out like loads/pollux beside this file (its README says what is what).
// NotFound names the file that is missing and, for an unknown workload, those there are;
// InvalidArgument names file, line and what would be right.
absl::StatusOr<ClusterLoad> ReadPolluxLoad(const std::string& folder, const std::string& workload);

// What the folder holds, sorted.
absl::StatusOr<std::vector<std::string>> PolluxWorkloads(const std::string& folder);

// Completion times that were published for a workload, seconds.
struct PublishedResult {
  std::string policy;
  std::string workload;
  double average_s = 0;
  double p99_s = 0;
  double makespan_s = 0;
};
absl::StatusOr<std::vector<PublishedResult>> ReadPublishedResults(const std::string& folder);

}  // namespace espalier
