#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace espalier {

class Trial;
class TrainingEngine;

struct DataParallelOptions {
  // By what the learning rate follows the batch size: adascale, adamscale, linear, sqrt, none.
  // Empty: adascale, or adamscale for Adam and AdamW.
  std::string scaling_rule;
  // The batch size the learning rate is meant for; 0: the loader's batch_size.
  std::int64_t base_batch_size = 0;
};

// Trains one model on however many replicas the trial has at the moment. Give it every microbatch's
// loss; it runs backward, and after the last one of a step sums the gradients over the replicas,
// measures the gradient noise, steps the optimizer with the learning rate that the scaling rule
// says, and lets replicas come and go. The learning rate in the optimizer's options stays the
// base rate, and the program may change it (schedules).
//
// Model and optimizer must outlive it; parameters are float, on the CPU. One thread. A mistake in
// its use ends the program with exit code 2 and a message.
class AdaptiveDataParallel {
 public:
  AdaptiveDataParallel(Trial& trial, torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                       DataParallelOptions options = {});
  ~AdaptiveDataParallel();
  AdaptiveDataParallel(const AdaptiveDataParallel&) = delete;
  AdaptiveDataParallel& operator=(const AdaptiveDataParallel&) = delete;

  // `loss` is the mean over the microbatch that the loader's NextBatch gave. Not to be called
  // twice for one microbatch, nor left out.
  void Step(const at::Tensor& loss);

  // Sums `sum_over(indices)` over `size` samples, cut over the replicas and there into batches of
  // at most `batch_size`; returns the total, the same on each replica. The model is in evaluation
  // mode and no gradients are recorded meanwhile. Each replica calls it at the same places. Whoever
  // joined after a call was done gets its result without computing; if a replica is lost during one
  // the others do it again, so sum_over must not count on being called once a sample.
  double Evaluate(std::int64_t size, std::int64_t batch_size,
                  const std::function<double(const at::Tensor& indices)>& sum_over);
  // The same for several sums; sum_over returns `sums` of them.
  std::vector<double> EvaluateSums(
      std::int64_t size, std::int64_t batch_size, std::size_t sums,
      const std::function<std::vector<double>(const at::Tensor& indices)>& sum_over);

  std::int64_t steps() const;       // optimizer steps done, over all replicas that ever were
  std::int64_t generation() const;  // of the present group
  int rank() const;
  int replicas() const;
  std::int64_t batch_size() const;  // global, of the next step
  double progress() const;          // scale-invariant steps: what they are worth at the initial
                                    // batch size

  // For the rest of the library.
  TrainingEngine& engine() { return *engine_; }

 private:
  std::unique_ptr<TrainingEngine> engine_;
};

}  // namespace espalier
