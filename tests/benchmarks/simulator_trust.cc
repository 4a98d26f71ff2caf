// bench: simulator_trust - the simulated cluster's average completion times, beside those published
//
// Optimus and Tiresias are deterministic; Pollux's search is not, so that its own authors expect
// 5 % between two runs. Each error is the largest of the recorded workloads, relative.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/benchmarks/programs/cluster_runs.h"
#include "tests/benchmarks/programs/smoke.h"

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::benchmarks;
  std::vector<ClusterLoad> loads = PublishedLoads();
  std::vector<std::string> policies = {"optimus", "tiresias", "pollux"};
  if (IsSmoke(argc, argv)) {
    loads.resize(1);
    policies.pop_back();  // its search takes minutes
  }
  std::string json;
  for (const std::string& policy : policies) {
    double error = 0;
    for (const ClusterLoad& load : loads) {
      const PublishedResult published = Published(policy, load.name);
      const ClusterRunResult run =
          RunCluster(load, policy, OriginalSettings(policy), PublishedOptions(policy));
      PrintRun(run, published);
      error = std::max(error,
                       std::abs(run.figures.average_s - published.average_s) / published.average_s);
    }
    char figure[64];
    std::snprintf(figure, sizeof figure, "%s\"%s_err\": %.6f", json.empty() ? "" : ", ",
                  policy.c_str(), error);
    json += figure;
  }
  std::printf("{%s}\n", json.c_str());
}
