#pragma once

#include <string>
#include <vector>

#include "allocator/simulator/cluster.h"
#include "allocator/simulator/loads/pollux_load.h"

namespace espalier::benchmarks {

// A recorded workload run to its end under one policy.
struct ClusterRunResult {
  std::string policy;
  std::string workload;
  ClusterFigures figures;
  double wall_s = 0;
  int decisions = 0;  // calls of the policy
  double mean_decision_ms = 0;
  double worst_decision_ms = 0;
};

// The workloads that come with figures published for Pollux, Optimus and Tiresias. These functions
// end the program with a message when something fails.
std::vector<ClusterLoad> PublishedLoads();
PublishedResult Published(const std::string& policy, const std::string& workload);
bool HasPolicy(const std::string& name);
// A policy set up as the original is.
Options OriginalSettings(const std::string& policy);
ClusterRunResult RunCluster(const ClusterLoad& load, const std::string& policy,
                            const Options& settings, const ClusterOptions& options);
// Prints one line, with what was published for `beside` in brackets.
void PrintRun(const ClusterRunResult& run, const PublishedResult& beside);

}  // namespace espalier::benchmarks
