#include "tests/benchmarks/programs/cluster_runs.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace espalier::benchmarks {

namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Looks at the clock around each decision of another policy.
class TimedPolicy : public Policy {
 public:
  explicit TimedPolicy(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  std::vector<AllocationDecision> Allocate(const Pool& pool) override {
    const auto start = Clock::now();
    auto decisions = policy_->Allocate(pool);
    const double seconds = Since(start);
    ++calls_;
    total_s_ += seconds;
    worst_s_ = std::max(worst_s_, seconds);
    return decisions;
  }

  int calls() const { return calls_; }
  double mean_ms() const { return calls_ > 0 ? 1e3 * total_s_ / calls_ : 0; }
  double worst_ms() const { return 1e3 * worst_s_; }

 private:
  std::unique_ptr<Policy> policy_;
  int calls_ = 0;
  double total_s_ = 0;
  double worst_s_ = 0;
};

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

}  // namespace

std::vector<ClusterLoad> PublishedLoads() {
  std::vector<ClusterLoad> loads;
  for (const std::string& name : OrDie(PolluxWorkloads(ESPALIER_POLLUX_LOADS))) {
    loads.push_back(OrDie(ReadPolluxLoad(ESPALIER_POLLUX_LOADS, name)));
  }
  return loads;
}

PublishedResult Published(const std::string& policy, const std::string& workload) {
  for (PublishedResult& result : OrDie(ReadPublishedResults(ESPALIER_POLLUX_LOADS))) {
    if (result.policy == policy && result.workload == workload) return std::move(result);
  }
  std::fprintf(stderr, "nothing was published for %s on %s\n", policy.c_str(), workload.c_str());
  std::exit(1);
}

bool HasPolicy(const std::string& name) {
  const auto names = Policies().Names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Options OriginalSettings(const std::string& policy) {
  if (policy == "optimus" || policy == "tiresias") return {{"share_spanned", 1}};
  return {};
}

ClusterRunResult RunCluster(const ClusterLoad& load, const std::string& policy,
                            const Options& settings, const ClusterOptions& options) {
  TimedPolicy timed(OrDie(MakePolicy(policy, settings)));
  const auto start = Clock::now();
  const Timeline timeline = OrDie(SimulateCluster(load, timed, options));
  return {policy,        load.name,       FiguresOf(timeline), Since(start),
          timed.calls(), timed.mean_ms(), timed.worst_ms()};
}

void PrintRun(const ClusterRunResult& run, const PublishedResult& beside) {
  std::printf(
      "%-16s %s: average %.3f s (%.3f), p99 %.0f (%.0f), makespan %.0f (%.0f), "
      "%.2f resizes a job, use %.2f; %.2f s wall, %d decisions of %.3f ms, worst %.3f\n",
      run.policy.c_str(), run.workload.c_str(), run.figures.average_s, beside.average_s,
      run.figures.p99_s, beside.p99_s, run.figures.makespan_s, beside.makespan_s,
      run.figures.mean_resizes, run.figures.slot_use, run.wall_s, run.decisions,
      run.mean_decision_ms, run.worst_decision_ms);
  std::fflush(stdout);
}

}  // namespace espalier::benchmarks
