#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "trial_runner/torch/adaptive_data_loader.h"

namespace espalier {

inline namespace programs {
class Trial;
}

class AdaptiveDataParallel;

struct ProbeBatch {
  at::Tensor indices;  // which samples these are, [n]
  at::Tensor inputs;   // [n, features], noise added to each sample by its own seed
  at::Tensor targets;  // [n, 1]
};

// The probe's samples, dealt in one of the ways that a program may choose. Parameters: data
// (indices, map, torch, stream), workers, prefetch, noise (how much is drawn on top of each
// sample), says (the size that a stream says it has; 0: none), broken_sample (reading it throws).
class ProbeData {
 public:
  ProbeData(Trial& trial, AdaptiveDataParallel& parallel, const at::Tensor& inputs,
            const at::Tensor& targets, DataLoaderOptions options);

  EpochLoader& loader() { return *loader_; }
  std::optional<ProbeBatch> Next() { return next_(); }

 private:
  template <typename Loader>
  void DealBy(const std::shared_ptr<Loader>& loader);

  std::shared_ptr<void> dataset_;  // outlives its loader
  EpochLoader* loader_ = nullptr;
  std::function<std::optional<ProbeBatch>()> next_;
};

}  // namespace espalier
