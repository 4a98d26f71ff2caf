#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "trial_runner/collectives/collectives.h"

namespace espalier {

// The gradients of all parameters in one piece of memory, with a few more numbers behind them that
// travel in the same all-reduce. Backward adds into it directly: the parameters' gradients are
// views of it. What an abandoned collective may still write to is replaced, never reused.
class FlatGradients {
 public:
  // Numbers behind the gradients. Each is summed over the replicas.
  enum Tail : std::int64_t {
    kPending,       // replicas that know of a newer generation
    kLocalSqr,      // squared norms of microbatch gradients
    kInverseSize,   // 1 / samples of each microbatch
    kMicrobatches,  // how many there were
    kNextBatch,     // rank 0's wish for the following steps, or 0: global and atomic batch size
    kNextAtomic,
    kTailSize,
  };

  // Float parameters in CPU memory that want gradients.
  explicit FlatGradients(std::vector<at::Tensor> parameters);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  // Makes the gradients zero, and views of this memory again if the program has replaced them.
  void PrepareBackward();

  // One microbatch's gradient is in, to count by `weight`. `last` and no other before it: scaled
  // in place. Else summed up beside, and after the last one moved into the gradients.
  void Accumulate(double weight, bool first, bool last);

  // The gradients count by element times `scale` in all norms and products; undefined: as they are.
  void ScaleNorms(at::Tensor scale) { scale_ = std::move(scale); }
  bool scaled() const { return scale_.defined(); }
  double Sqr() const;  // of what is in the gradients now

  void SetTail(Tail index, double value);
  double tail(Tail index) const;
  CollectiveBuffer Buffer() const;

  // Keeps this step's gradient as the previous one and goes on in other memory.
  void KeepAsPrevious();
  void DropPrevious() { previous_.reset(); }
  bool has_previous() const { return previous_.defined(); }
  double PreviousSqr() const;
  double ProductWithPrevious() const;

  // Leaves the memory to whom it may concern, and goes on in fresh one.
  void Renew();

 private:
  at::Tensor NewMemory() const;
  at::Tensor GradientPart(const at::Tensor& memory) const;
  at::Tensor ScaledPart(const at::Tensor& memory) const;
  void PointGradients();

  std::vector<at::Tensor> parameters_;
  std::int64_t size_ = 0;
  at::Tensor memory_;    // what the gradients are views of
  at::Tensor sum_;       // of several microbatches
  at::Tensor previous_;  // of the step before
  at::Tensor scale_;
};

}  // namespace espalier
