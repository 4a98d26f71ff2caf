#pragma once

#include <cstdint>

#include "allocator/goodput/throughput_model.h"

namespace espalier {

// Gradient statistics of a trial at its initial batch size: |true gradient|^2 and the trace of the
// gradient's covariance. The default (no noise measured yet) makes every larger batch as good as
// the initial one sample by sample, which invites trying it.
struct GradientNoise {
  double sqr = 0;
  double var = 1;

  friend bool operator==(const GradientNoise&, const GradientNoise&) = default;
};

// What batches a trial allows. Counts are samples.
struct BatchBounds {
  std::int64_t initial = 1;     // of an optimizer step over all replicas
  std::int64_t max_global = 1;  // at most so many over all replicas
  std::int64_t min_atomic = 1;  // of one microbatch on one replica
  std::int64_t max_atomic = 1;
  bool accumulation = true;  // an optimizer step may have several microbatches
  // The most samples of a step that a lone replica takes in one microbatch; 0: initial, and in
  // fixed mode any number.
  std::int64_t max_unsplit = 0;

  // Whether a lone replica takes at least two microbatches for a step of so many samples: it
  // measures the gradient noise between them.
  bool SplitsAlone(double batch_size) const;
  // Whether it also splits a batch of exactly so many samples, which no model has chosen: into
  // halves of at least min_atomic. A trial that tells no max_unsplit, as those of published
  // workloads, keeps such a batch whole.
  bool SplitsFixedAlone(std::int64_t batch_size) const;

  friend bool operator==(const BatchBounds&, const BatchBounds&) = default;
};

// A batch for one number of replicas. Goodput 0: no batch is possible there.
struct BatchChoice {
  int replicas = 1;
  double goodput = 0;     // useful samples a second: throughput times statistical efficiency
  double throughput = 0;  // samples a second
  std::int64_t atomic_batch_size = 0;
  std::int64_t accumulation_steps = 0;

  // Samples of one optimizer step over all replicas.
  std::int64_t global() const { return replicas * atomic_batch_size * (accumulation_steps + 1); }
};

// Goodput of one trial (Pollux, section 3): how many samples a second it processes in a shape,
// times what a sample is worth at that batch size compared with one at the initial batch size.
// Immutable.
class GoodputModel {
 public:
  GoodputModel(ThroughputParams params, GradientNoise noise, BatchBounds bounds);

  double Throughput(int nodes, int replicas, std::int64_t atomic_batch_size,
                    std::int64_t accumulation_steps) const;
  // (phi + M0) / (phi + M) with the gradient noise scale phi = M0 * var / sqr: in (0, 1]. A batch
  // below the initial one counts as the initial one.
  double Efficiency(std::int64_t global_batch_size) const;
  // 0 where the global batch would be below the initial one: the model says nothing there.
  double Goodput(int nodes, int replicas, std::int64_t atomic_batch_size,
                 std::int64_t accumulation_steps) const;

  // The best batch within the bounds, among 50 global batch sizes in geometric progression.
  // Rounding up to whole samples may exceed max_global by less than one sample per microbatch.
  BatchChoice Optimize(int nodes, int replicas) const;

  // The goodput of Optimize's choice, or a little less: only some of the same batch sizes are
  // looked at, which takes a third of the time. For comparing many shapes.
  double NearlyOptimalGoodput(int nodes, int replicas) const;

  // The global batch stays what it is and is split over the replicas, with accumulation where a
  // share is larger than max_atomic or a lone replica splits it. Shares may differ by a sample, so
  // the longest one counts and global() may round up. Efficiency is 1: every shape trains the same
  // batch.
  BatchChoice AtFixedGlobalBatch(int nodes, int replicas, std::int64_t global_batch_size) const;

  const ThroughputParams& params() const { return params_; }
  const GradientNoise& noise() const { return noise_; }
  const BatchBounds& bounds() const { return bounds_; }

 private:
  BatchChoice ChoiceNear(int nodes, int replicas, double global_batch_size) const;

  ThroughputParams params_;
  GradientNoise noise_;
  BatchBounds bounds_;
};

}  // namespace espalier
