// What the resize benchmark trains: a perceptron 64-256-256-10 (0.35 MB) on made-up data, for ever.
// Each replica writes the end of every step to FOLDER/PID: monotonic seconds, generation, rank,
// replicas, step. Usage: bench_resize_trial FOLDER

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <limits>
#include <string>

#include "trial_runner/torch/adaptive_data_loader.h"
#include "trial_runner/torch/adaptive_data_parallel.h"
#include "trial_runner/torch/trial.h"

namespace {

struct Net : torch::nn::Module {
  Net()
      : a(register_module("a", torch::nn::Linear(64, 256))),
        b(register_module("b", torch::nn::Linear(256, 256))),
        c(register_module("c", torch::nn::Linear(256, 10))) {}
  at::Tensor forward(const at::Tensor& x) { return c(at::relu(b(at::relu(a(x))))); }
  torch::nn::Linear a, b, c;
};

double MonotonicSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  espalier::Trial trial(argc, argv);
  std::FILE* log = argc > 1 ? std::fopen((std::string(argv[1]) + "/" + std::to_string(getpid())).c_str(), "w") : nullptr;
  if (log == nullptr) {
    std::fprintf(stderr, "usage: bench_resize_trial FOLDER (which must exist)\n");
    return 2;
  }
  const at::Tensor x = torch::randn({4096, 64});
  const at::Tensor y = torch::randint(10, {4096});
  Net net;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(trial.Get("lr", 0.01)).momentum(0.9));
  espalier::AdaptiveDataParallel parallel(trial, net, optimizer, {.scaling_rule = "adascale"});
  espalier::AdaptiveDataLoader loader(parallel, x.size(0), {.batch_size = 256});
  while (loader.NextEpoch(std::numeric_limits<std::int64_t>::max())) {
    while (const auto indices = loader.NextBatch()) {
      parallel.Step(torch::nn::functional::cross_entropy(net.forward(x.index_select(0, *indices)),
                                                         y.index_select(0, *indices)));
      std::fprintf(log, "%.6f %lld %d %d %lld\n", MonotonicSeconds(),
                   static_cast<long long>(parallel.generation()), parallel.rank(),
                   parallel.replicas(), static_cast<long long>(parallel.steps()));
      std::fflush(log);
    }
  }
  trial.Finish(0.0);
}
