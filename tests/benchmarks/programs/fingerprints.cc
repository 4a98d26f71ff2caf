// What comparing replicas costs each of them in a step: a model trained by the plain LibTorch loop,
// and after each of its steps the numbers that a replica of several would put into the step's sums
// and read out of them. Alone they would find what they read in the caches.
//
// Usage: bench_fingerprints MODEL ROUNDS
// Prints processor seconds a step of the plain loop, and those of the comparison. A round is as
// many steps as it takes until all tensors have come by.

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

}  // namespace

int main(int argc, char** argv) {
  auto workload = argc == 3 ? MakeWorkload(argv[1], at::kCPU) : std::nullopt;
  const std::int64_t rounds = argc == 3 ? std::atoll(argv[2]) : 0;
  auto collectives = espalier::MakeGlooCollectives({});
  if (!workload || rounds < 1 || !collectives.ok()) {
    std::fprintf(stderr, "usage: bench_fingerprints MODEL ROUNDS\n");
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
  compare();  // after a join all tensors are compared
  const std::int64_t steps = rounds * espalier::ReplicaCheck::kRounds;
  double training_s = 0;
  double comparing_s = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const double start = ProcessorSeconds();
    train();
    const double trained = ProcessorSeconds();
    if (!compare()) return 1;
    training_s += trained - start;
    comparing_s += ProcessorSeconds() - trained;
  }
  std::printf("%.9f %.9f\n", training_s / static_cast<double>(steps),
              comparing_s / static_cast<double>(steps));
  return 0;
}
