// What the overhead benchmark runs: one model trained by the plain LibTorch loop and by the
// adaptive one, in one process and in turns, so that whatever else the machine does falls on both.
//
// Usage: bench_overhead_loop MODEL PAIRS TURN_S MICROBATCHES [BATCH]
// Prints a line a pair: seconds a step of the plain and of the adaptive loop, then processor
// seconds a step of both. With 2 MICROBATCHES the batch is twice the adaptive loop's base batch,
// which it then takes in two; the plain loop always takes its batch in one. Where calls of CUDA are
// counted (tests/gpu/cuda_calls.cc), the lines end with launches, waits and copies a step of the
// plain and then of the adaptive loop.

#include <ATen/ops/randperm.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "tests/benchmarks/programs/workloads.h"
#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

constexpr int kDropped = 2;  // steps after each change of turns, in which caches fill again

double SecondsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class PlainLoop {
 public:
  explicit PlainLoop(Workload workload)
      : workload_(std::move(workload)), optimizer_(MakeOptimizer(workload_)) {
    workload_.net->train();
  }

  void Step() {
    if (!order_.defined() || cursor_ + workload_.batch_size > order_.size(0)) {
      order_ = at::randperm(Workload::kDatasetSize, workload_.inputs.device());
      cursor_ = 0;
    }
    optimizer_.zero_grad();
    at::Tensor loss;
    {
      const espalier::AutocastGuard precision(
          static_cast<int>(workload_.inputs.device().type()),
          workload_.precision == "bf16" ? static_cast<int>(at::kBFloat16) : -1);
      loss = workload_.Loss(order_.narrow(0, cursor_, workload_.batch_size));
    }
    loss.backward();
    optimizer_.step();
    cursor_ += workload_.batch_size;
  }

 private:
  Workload workload_;
  torch::optim::SGD optimizer_;
  at::Tensor order_;
  std::int64_t cursor_ = 0;
};

class AdaptiveLoop {
 public:
  AdaptiveLoop(espalier::Trial& trial, Workload workload, std::int64_t base_batch_size)
      : workload_(std::move(workload)),
        optimizer_(MakeOptimizer(workload_)),
        parallel_(trial, *workload_.net, optimizer_,
                  {.scaling_rule = "adascale",
                   .base_batch_size = base_batch_size,
                   .mixed_precision = workload_.precision}),
        loader_(parallel_, Workload::kDatasetSize, {.batch_size = workload_.batch_size}) {
    workload_.net->train();
    loader_.NextEpoch(kEpochs);
  }

  // As many samples as a step of the plain loop, in one microbatch or in several.
  void Step() {
    for (std::int64_t samples = 0; samples < workload_.batch_size;) {
      const auto indices = loader_.NextBatch();
      if (!indices) {
        loader_.NextEpoch(kEpochs);
        continue;
      }
      samples += indices->size(0);
      at::Tensor loss;
      {
        const auto precision = parallel_.Autocast();
        loss = workload_.Loss(*indices);
      }
      parallel_.Step(loss);
    }
  }

 private:
  static constexpr std::int64_t kEpochs = std::numeric_limits<std::int64_t>::max();
  Workload workload_;
  torch::optim::SGD optimizer_;
  espalier::AdaptiveDataParallel parallel_;
  espalier::AdaptiveDataLoader loader_;
};

// Launches, waits and copies so far; zeros where nobody counts them.
using Calls = std::array<unsigned long long, 3>;

using CountCalls = void (*)(unsigned long long*);

CountCalls Counter() {
  static const auto counter = reinterpret_cast<CountCalls>(dlsym(RTLD_DEFAULT, "CudaCalls"));
  return counter;
}

Calls CallsSoFar() {
  Calls calls{};
  if (const CountCalls count = Counter()) count(calls.data());
  return calls;
}

struct Spent {
  double wall_s = 0;
  double processor_s = 0;
  Calls calls{};
};

void PrintCalls(const Spent& spent, double steps) {
  for (const unsigned long long count : spent.calls) {
    std::printf(" %.2f", static_cast<double>(count) / steps);
  }
}

// The clocks are read when the device has done what was asked of it.
void RunTurn(at::Device device, const std::function<void()>& step, int steps, Spent& spent) {
  const auto await_device = [device] {
    if (device.is_cpu()) return;
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
  };
  for (int i = 0; i < kDropped; ++i) step();
  await_device();
  const double wall = SecondsOf(CLOCK_MONOTONIC);
  const double processor = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
  const Calls calls = CallsSoFar();
  for (int i = 0; i < steps; ++i) step();
  const Calls now = CallsSoFar();
  for (std::size_t i = 0; i < calls.size(); ++i) spent.calls[i] += now[i] - calls[i];
  await_device();
  spent.wall_s += SecondsOf(CLOCK_MONOTONIC) - wall;
  spent.processor_s += SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - processor;
}

}  // namespace

int main(int argc, char** argv) {
  espalier::Trial trial(argc, argv);
  const bool complete = argc == 5 || argc == 6;
  auto for_plain = complete ? MakeWorkload(argv[1], trial.device()) : std::nullopt;
  auto for_adaptive = complete ? MakeWorkload(argv[1], trial.device()) : std::nullopt;
  const double turn_s = complete ? std::atof(argv[3]) : 0;
  const int microbatches = complete ? std::atoi(argv[4]) : 0;
  const std::int64_t batch = argc == 6 ? std::atoll(argv[5]) : 0;
  if (!for_plain || !(turn_s > 0) || microbatches < 1 || microbatches > 2 || batch < 0) {
    std::fprintf(
        stderr,
        "usage: bench_overhead_loop convnet|resnet18|mlp|small|large|transformer|transformer_bf16 "
        "PAIRS TURN_S 1|2 [BATCH]\n");
    return 2;
  }
  if (batch > 0) for_plain->batch_size = for_adaptive->batch_size = batch;
  PlainLoop plain(*std::move(for_plain));
  const std::int64_t base_batch_size = for_adaptive->batch_size / microbatches;
  AdaptiveLoop adaptive(trial, *std::move(for_adaptive), base_batch_size);
  const auto step_plain = [&] { plain.Step(); };
  const auto step_adaptive = [&] { adaptive.Step(); };

  const at::Device device = trial.device();
  int steps = 3;
  // The first steps of a process on a GPU load kernels: what they took says little.
  for (int trial_run = 0; trial_run < 2; ++trial_run) {
    Spent spent;
    RunTurn(device, step_plain, steps, spent);
    RunTurn(device, step_adaptive, steps, spent);
    steps = std::max(3, static_cast<int>(turn_s / (spent.wall_s / (2 * steps))));
  }
  for (int pair = 0; pair < std::atoi(argv[2]); ++pair) {
    Spent by_plain;
    Spent by_adaptive;
    for (int turn = 0; turn < 2; ++turn) {
      RunTurn(device, step_plain, steps, by_plain);
      RunTurn(device, step_adaptive, 2 * steps, by_adaptive);
      RunTurn(device, step_plain, steps, by_plain);
    }
    const double each = 4.0 * steps;
    std::printf("%.9f %.9f %.9f %.9f", by_plain.wall_s / each, by_adaptive.wall_s / each,
                by_plain.processor_s / each, by_adaptive.processor_s / each);
    if (Counter() != nullptr) {
      PrintCalls(by_plain, each);
      PrintCalls(by_adaptive, each);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::_Exit(0);  // no trial to finish: a report would be printed
}
