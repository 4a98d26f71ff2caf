// What the benchmarks of elastic trials train: a workload of workloads.h, for ever. Each replica
// writes the end of every step to FOLDER/PID: monotonic seconds, generation, rank, replicas, step.
// Usage: bench_resize_trial FOLDER WORKLOAD [SAMPLES_OF_AN_EPOCH [FROZEN_MB]], the last of a buffer
// that the model carries along and that is handed over with it, as a frozen base would be.

#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>
#include <string>

#include "tests/benchmarks/programs/workloads.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

double MonotonicSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  espalier::Trial trial(argc, argv);
  const auto workload =
      argc >= 3 && argc <= 5 ? MakeWorkload(argv[2], trial.device()) : std::nullopt;
  std::FILE* log =
      workload ? std::fopen((std::string(argv[1]) + "/" + std::to_string(getpid())).c_str(), "w")
               : nullptr;
  if (log == nullptr) {
    std::fprintf(stderr,
                 "usage: bench_resize_trial FOLDER (which must exist) WORKLOAD "
                 "[SAMPLES_OF_AN_EPOCH [FROZEN_MB]]\n");
    return 2;
  }
  if (argc == 5) {
    constexpr std::int64_t kFloats = 250'000;  // of a megabyte
    workload->net->register_buffer("frozen",
                                   at::zeros({std::atoll(argv[4]) * kFloats}, trial.device()));
  }
  torch::optim::SGD optimizer = MakeOptimizer(*workload);
  espalier::AdaptiveDataParallel parallel(trial, *workload->net, optimizer,
                                          {.scaling_rule = "adascale"});
  // A checkpoint is written at each epoch's end.
  const std::int64_t samples = argc >= 4 ? std::atoll(argv[3]) : Workload::kDatasetSize;
  espalier::AdaptiveDataLoader loader(parallel, samples, {.batch_size = workload->batch_size});
  const auto step = [&](const at::Tensor& indices) { parallel.Step(workload->Loss(indices)); };
  loader.Rehearse(step);
  while (loader.NextEpoch(std::numeric_limits<std::int64_t>::max())) {
    while (const auto indices = loader.NextBatch()) {
      step(*indices);
      std::fprintf(log, "%.6f %lld %d %d %lld\n", MonotonicSeconds(),
                   static_cast<long long>(parallel.generation()), parallel.rank(),
                   parallel.replicas(), static_cast<long long>(parallel.steps()));
      std::fflush(log);
    }
  }
  trial.Finish(0.0);
}
