// bench: simulator_speed - wall time of a 160-job workload in the simulated cluster, by policy
//
// Every policy of the table but the genetic searches, on the recorded workloads at the published
// load, decisions each 60 s. worst_s is the slowest single run.

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/benchmarks/programs/cluster_runs.h"
#include "tests/benchmarks/programs/smoke.h"

namespace {

constexpr std::array<std::string_view, 1> kGenetic = {"pollux"};

}  // namespace

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::benchmarks;
  std::vector<ClusterLoad> loads = PublishedLoads();
  if (IsSmoke(argc, argv)) loads.resize(1);
  double worst_s = 0;
  for (const std::string& policy : Policies().Names()) {
    if (std::find(kGenetic.begin(), kGenetic.end(), policy) != kGenetic.end()) continue;
    for (const ClusterLoad& load : loads) {
      const ClusterRunResult run =
          RunCluster(load, policy, OriginalSettings(policy), PublishedOptions(policy));
      PrintRun(run, Published("pollux", load.name));
      worst_s = std::max(worst_s, run.wall_s);
    }
  }
  std::printf("{\"worst_s\": %.3f}\n", worst_s);
}
