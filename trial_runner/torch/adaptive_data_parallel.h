#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trial_runner/elastic/scaling_rules.h"

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

inline namespace programs {
class Trial;
}

class TrainingEngine;

struct DataParallelOptions {
  // How the learning rate follows the batch size: adascale, adamscale, linear, sqrt, legw:EPOCHS,
  // none. Empty: adascale, or adamscale for Adam and AdamW.
  std::string scaling_rule = {};
  // The batch size for which the learning rate is meant; 0: the loader's batch_size.
  std::int64_t base_batch_size = 0;
  // In a trial with several models each has a name, by which checkpoints and errors tell them
  // apart.
  std::string name = {};
  // A rule of your own, instead of a named one.
  std::shared_ptr<const ScalingRule> rule = nullptr;
  // Gradients with a larger norm are scaled down to this one before the optimizer steps; 0: never.
  double max_gradient_norm = 0;
  // "bf16" or "fp16": the precision in which Autocast() computes; fp16 also scales the loss so that
  // small gradients do not vanish. Empty: float.
  std::string mixed_precision = {};
  // A step whose gradients are not finite is skipped: the model stays as it is. After so many of
  // them in a row the trial fails; 0: at the first one; negative: never. With fp16, steps that are
  // skipped while the loss scale finds its place do not count.
  std::int64_t max_skipped_steps = 10;
  // Gradients are reduced in pieces of about this size, while backward computes the rest. 0: 4 MB,
  // and by NCCL 25 MB after a first one of 1 MB.
  std::int64_t bucket_bytes = 0;
};

// While it lives, operations of the forward pass compute in the precision that the model was given.
class AutocastGuard {
 public:
  AutocastGuard(int device_type, int scalar_type);  // of LibTorch; a negative scalar type: nothing
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  const int device_type_;
  const bool active_;
  bool was_enabled_ = false;
  int former_type_ = 0;
};

// Trains one model on however many replicas the trial has at the moment. Give it every microbatch's
// loss; it runs backward, and in the last one of a step sums the gradients over the replicas while
// they come in, measures the gradient noise, steps the optimizer with the learning rate that the
// scaling rule gives, and lets replicas come and go. The learning rate in the optimizer's options
// stays the base rate, and the program may change it (schedules).
//
// A trial with several models and optimizers makes one for each, under different names, on the same
// Trial. For each microbatch of the loader each of them is given its loss, in the order in which
// they were made; what backward leaves in the others' gradients is ignored. A loss that is computed
// through another model sees that model's step only in the last microbatch of a step: without
// accumulation, as in a plain loop. Evaluate may be called on any of them.
//
// Model and optimizer must outlive it; parameters are of float, bfloat16 or half, and all on one
// device. Those that require no gradient when it is made are never trained, and take no memory for
// it; freeze after that what is to be frozen for a while. Use it from one thread. A mistake in its
// use ends the program with exit code 2 and a message.
class AdaptiveDataParallel {
 public:
  AdaptiveDataParallel(Trial& trial, torch::nn::Module& model, torch::optim::Optimizer& optimizer,
                       const DataParallelOptions& options = {});
  ~AdaptiveDataParallel();
  AdaptiveDataParallel(const AdaptiveDataParallel&) = delete;
  AdaptiveDataParallel& operator=(const AdaptiveDataParallel&) = delete;

  // `loss` is the mean over the microbatch that the loader's NextBatch gave. Call it exactly once
  // for each microbatch.
  void Step(const at::Tensor& loss);

  // Runs a microbatch that counts for nothing, so that this replica's first one is quick: the first
  // forward and backward pass of a process on a GPU may take a second or two, for which the whole
  // group would wait for a replica that joins it. To be called before the first NextEpoch, when all
  // models are made; `microbatch` does what the program's loop does for a batch, with samples that
  // it chooses, and calls Step for each model once. Step then runs backward and nothing else: no
  // optimizer steps. Afterwards the models' buffers, LibTorch's default random generators and
  // Accumulators are as they were, and no gradients are left. What else the function changes is the
  // program's own to put back: its counters, other generators, the state of a data set.
  void Rehearse(const std::function<void()>& microbatch);

  // For the forward pass, and for evaluation: `auto precision = parallel.Autocast();`
  AutocastGuard Autocast() const;

  // Sums `sum_over(indices)` over `size` samples, divided among the replicas and there into batches
  // of at most `batch_size`; returns the total, the same on each replica. The models are in
  // evaluation mode and no gradients are recorded meanwhile. Each replica calls it at the same
  // places. A replica that joined after a call was done gets its result without computing. If a
  // replica is lost during a call, the others repeat it, so sum_over must not count on being called
  // once per sample.
  double Evaluate(std::int64_t size, std::int64_t batch_size,
                  const std::function<double(const at::Tensor& indices)>& sum_over);
  // The same for several sums; sum_over returns `sums` of them.
  std::vector<double> EvaluateSums(
      std::int64_t size, std::int64_t batch_size, std::size_t sums,
      const std::function<std::vector<double>(const at::Tensor& indices)>& sum_over);

  std::int64_t steps() const;       // optimizer steps done by the trial
  std::int64_t generation() const;  // of the present group
  int rank() const;
  int replicas() const;
  std::int64_t batch_size() const;     // global, of the next step
  double progress() const;             // scale-invariant steps: what they are worth at the initial
                                       // batch size
  std::int64_t skipped_steps() const;  // in all; their gradients were not finite

  // For the rest of the library.
  TrainingEngine& engine() { return *engine_; }

 private:
  std::shared_ptr<TrainingEngine> engine_;  // the trial's one
  std::size_t model_ = 0;
};

}  // namespace espalier
