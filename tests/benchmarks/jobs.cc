// bench: jobs - completion times of recorded workloads under our policy, beside Pollux's published
//
// Twice: as Pollux was run, with decisions each minute and 30 s for a resize; and as Espalier runs,
// with decisions on events and its own measured cost of a resize. Every job's promise is the same.
// Ratios are ours to Pollux's published figure, the mean over the workloads.
//
//   bench_jobs [POLICY [OPTION=VALUE...]]     to try another policy, or other options of it
//   bench_jobs --smoke                        one workload

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/benchmarks/programs/cluster_runs.h"
#include "tests/benchmarks/programs/smoke.h"

namespace {

using namespace espalier;
using namespace espalier::benchmarks;

constexpr char kOurs[] = "promise_goodput";
// Training time that a resize costs a job with a large model, by tests/benchmarks/resize.py.
constexpr double kOwnResizeCostS = 0.1;

struct Ratios {
  double average = 0;
  double p99 = 0;
  double makespan = 0;
  double worst_average = 0;
  double worst_p99 = 0;
  double worst_makespan = 0;
};

Ratios Measure(const std::vector<ClusterLoad>& loads, const std::string& policy,
               const Options& settings, const ClusterOptions& options) {
  const auto count = static_cast<double>(loads.size());
  Ratios ratios;
  const auto add = [&](double ours, double theirs, double& mean, double& worst) {
    mean += ours / theirs / count;
    worst = std::max(worst, ours / theirs);
  };
  for (const ClusterLoad& load : loads) {
    const ClusterRunResult run = RunCluster(load, policy, settings, options);
    const PublishedResult pollux = Published("pollux", load.name);
    PrintRun(run, pollux);
    add(run.figures.average_s, pollux.average_s, ratios.average, ratios.worst_average);
    add(run.figures.p99_s, pollux.p99_s, ratios.p99, ratios.worst_p99);
    add(run.figures.makespan_s, pollux.makespan_s, ratios.makespan, ratios.worst_makespan);
  }
  return ratios;
}

void Print(const Ratios& r) {
  std::printf(
      "beside Pollux: average %.3f (worst workload %.3f), p99 %.3f (%.3f), makespan %.3f "
      "(%.3f)\n",
      r.average, r.worst_average, r.p99, r.worst_p99, r.makespan, r.worst_makespan);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<ClusterLoad> loads = PublishedLoads();
  if (IsSmoke(argc, argv)) {
    loads.resize(1);
    argc = 1;
  }
  const std::string policy = argc > 1 ? argv[1] : kOurs;
  Options settings;
  // Plain jobs, whose mean completion time counts.
  if (argc <= 1) settings["urgency"] = 1;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto equals = argument.find('=');
    if (equals == std::string::npos) {
      std::fprintf(stderr, "\"%s\": needs OPTION=VALUE\n", argv[i]);
      return 2;
    }
    settings[argument.substr(0, equals)] = std::atof(argument.c_str() + equals + 1);
  }
  std::printf("decisions each 60 s, 30 s a resize:\n");
  const Ratios published = Measure(loads, policy, settings, {});
  Print(published);
  ClusterOptions own;
  own.on_events = true;
  own.resize_cost_s = kOwnResizeCostS;
  std::printf("decisions on events, %.1f s a resize:\n", own.resize_cost_s);
  const Ratios ours = Measure(loads, policy, settings, own);
  Print(ours);
  std::printf(
      "{\"jct_ratio\": %.4f, \"p99_ratio\": %.4f, \"makespan_ratio\": %.4f, "
      "\"jct_ratio_own_cost\": %.4f, \"jct_ratio_worst\": %.4f, \"p99_ratio_worst\": %.4f, "
      "\"makespan_ratio_worst\": %.4f, \"p99_ratio_own_cost\": %.4f, "
      "\"makespan_ratio_own_cost\": %.4f}\n",
      published.average, published.p99, published.makespan, ours.average, published.worst_average,
      published.worst_p99, published.worst_makespan, ours.p99, ours.makespan);
}
