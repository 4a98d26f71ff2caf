// What comparing replicas costs each of them in a step: a model trained by the plain LibTorch loop,
// and after each of its steps the numbers that a replica of several would put into the step's sums
// and read out of them. Alone they would find what they read in the caches.
//
// Usage: bench_fingerprints MODEL PAIRS TURN_S
// Takes turns of so many processor seconds without the comparison and with it, whose order
// alternates. Prints a line a pair: processor seconds a step without and with it, and what the
// comparison took of the latter, less what reading the clock does; and in how many steps all
// tensors come by. Turns go on where the last one ended.

#include <ATen/Parallel.h>
#include <ATen/ops/randperm.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/benchmarks/programs/workloads.h"
#include "trial_runner/collectives/gloo/gloo_collectives.h"
#include "trial_runner/torch/engine/libtorch_parts.h"
#include "trial_runner/torch/engine/replica_check.h"

namespace {

// Of all threads, as the step's are.
double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Turn {
  double step_s = 0;   // processor seconds of a step, with what comes after it
  double after_s = 0;  // of these what comes after it
};

// Steps of `train`, each followed by `after`, which is false where replicas differ: then nothing.
template <typename Train, typename After>
std::optional<Turn> TakeTurn(double seconds, const Train& train, const After& after) {
  const double start = ProcessorSeconds();
  double after_s = 0;
  int steps = 0;
  while (steps < 2 || ProcessorSeconds() - start < seconds) {
    train();
    const double trained = ProcessorSeconds();
    if (!after()) return std::nullopt;
    after_s += ProcessorSeconds() - trained;
    ++steps;
  }
  return Turn{.step_s = (ProcessorSeconds() - start) / steps, .after_s = after_s / steps};
}

}  // namespace

int main(int argc, char** argv) {
  auto workload = argc == 4 ? MakeWorkload(argv[1], at::kCPU) : std::nullopt;
  const int pairs = argc == 4 ? std::atoi(argv[2]) : 0;
  const double turn_s = argc == 4 ? std::atof(argv[3]) : 0;
  auto collectives = espalier::MakeGlooCollectives({});
  if (!workload || pairs < 1 || turn_s <= 0 || !collectives.ok()) {
    std::fprintf(stderr, "usage: bench_fingerprints MODEL PAIRS TURN_S\n");
    return 2;
  }
  at::set_num_threads(1);
  workload->net->train();
  torch::optim::SGD optimizer = MakeOptimizer(*workload);
  const auto train = [&] {
    optimizer.zero_grad();
    workload->Loss(at::randperm(workload->inputs.size(0)).narrow(0, 0, workload->batch_size))
        .backward();
    optimizer.step();
  };
  train();  // which makes the optimizer's state
  auto made =
      espalier::TrainedModel::Make(std::make_unique<espalier::LibTorchModel>(*workload->net),
                                   std::make_unique<espalier::LibTorchOptimizer>(optimizer), {});
  if (!made.ok()) return 1;
  std::vector<std::unique_ptr<espalier::TrainedModel>> models;
  models.push_back(*std::move(made));
  espalier::GradientBuckets& gradients = models.front()->gradients();
  if (!(*collectives)->Form({1, 0, 1, (*collectives)->Address()}).ok()) return 1;
  gradients.Begin({}, **collectives, /*replicas=*/2);
  gradients.End();
  espalier::ReplicaCheck check(models, espalier::ReplicaCheck::Mode::kBits);
  espalier::TrainingPosition position;
  position.models = {models.front()->FirstPosition()};
  const auto compare = [&] {
    check.Fill(gradients, position);
    const bool alike = check.Agree(gradients, /*members=*/1, position);
    ++position.step;
    return alike;
  };
  const auto nothing = [] { return true; };
  compare();                                        // after a join all tensors are compared
  if (!TakeTurn(turn_s, train, nothing)) return 1;  // to warm up
  for (int pair = 0; pair < pairs; ++pair) {
    std::optional<Turn> on;
    if (pair % 2 == 0) on = TakeTurn(turn_s, train, compare);
    const std::optional<Turn> off = TakeTurn(turn_s, train, nothing);
    if (pair % 2 == 1) on = TakeTurn(turn_s, train, compare);
    if (!on || !off) return 1;
    std::printf("%.9f %.9f %.9f %lld\n", off->step_s, on->step_s, on->after_s - off->after_s,
                static_cast<long long>(check.Rounds()));
    std::fflush(stdout);
  }
  return 0;
}
