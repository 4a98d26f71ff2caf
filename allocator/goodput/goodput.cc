#include "allocator/goodput/goodput.h"

#include <algorithm>
#include <cmath>

#include "allocator/goodput/sample_rounding.h"
#include "base/check.h"

namespace espalier {

namespace {

constexpr int kCandidates = 50;
constexpr int kStride = 4;

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

bool BatchBounds::SplitsAlone(double batch_size) const {
  return accumulation && batch_size > static_cast<double>(max_unsplit > 0 ? max_unsplit : initial) +
                                          kSampleRounding;
}

bool BatchBounds::SplitsFixedAlone(std::int64_t batch_size) const {
  return max_unsplit > 0 && CeilDivide(batch_size, 2) >= min_atomic &&
         SplitsAlone(static_cast<double>(batch_size));
}

GoodputModel::GoodputModel(ThroughputParams params, GradientNoise noise, BatchBounds bounds)
    : params_(params), noise_(noise), bounds_(bounds) {
  ESPALIER_CHECK(
      bounds.initial >= 1 && bounds.min_atomic >= 1 && bounds.max_atomic >= bounds.min_atomic,
      "batch bounds must be positive and ordered");
}

double GoodputModel::Throughput(int nodes, int replicas, std::int64_t atomic_batch_size,
                                std::int64_t accumulation_steps) const {
  return espalier::Throughput(params_, nodes, replicas, static_cast<double>(atomic_batch_size),
                              accumulation_steps);
}

double GoodputModel::Efficiency(std::int64_t global_batch_size) const {
  const double scale =
      std::max(1.0, static_cast<double>(global_batch_size) / static_cast<double>(bounds_.initial));
  const double denominator = noise_.var / scale + noise_.sqr;
  const double gain = denominator > 0 ? (noise_.var + noise_.sqr) / denominator : 1.0;
  return gain / scale;
}

double GoodputModel::Goodput(int nodes, int replicas, std::int64_t atomic_batch_size,
                             std::int64_t accumulation_steps) const {
  const std::int64_t global = replicas * atomic_batch_size * (accumulation_steps + 1);
  if (global < bounds_.initial) return 0;
  return Throughput(nodes, replicas, atomic_batch_size, accumulation_steps) * Efficiency(global);
}

BatchChoice GoodputModel::ChoiceNear(int nodes, int replicas, double global_batch_size) const {
  const double local = global_batch_size / replicas;
  std::int64_t s = 0;
  if (bounds_.accumulation) {
    s = CeilOfSamples(local / static_cast<double>(bounds_.max_atomic)) - 1;
    if (replicas == 1 && bounds_.SplitsAlone(local)) s = std::max<std::int64_t>(s, 1);
    // No more microbatches than there are samples for, with the least one of each.
    const std::int64_t most =
        std::max(bounds_.initial, bounds_.max_global) / (replicas * bounds_.min_atomic) - 1;
    s = std::max<std::int64_t>(std::min(s, most), 0);
  }
  const std::int64_t m = std::clamp(CeilOfSamples(local / static_cast<double>(s + 1)),
                                    bounds_.min_atomic, bounds_.max_atomic);
  const double throughput = Throughput(nodes, replicas, m, s);
  BatchChoice choice{.replicas = replicas,
                     .throughput = throughput,
                     .atomic_batch_size = m,
                     .accumulation_steps = s};
  if (choice.global() >= bounds_.initial) choice.goodput = throughput * Efficiency(choice.global());
  return choice;
}

BatchChoice GoodputModel::Optimize(int nodes, int replicas) const {
  BatchChoice best{.replicas = replicas};
  const auto low = static_cast<double>(
      std::max(bounds_.initial, bounds_.min_atomic * static_cast<std::int64_t>(replicas)));
  const auto high = static_cast<double>(std::max(bounds_.initial, bounds_.max_global));
  if (low > high) return best;
  const int candidates = low < high ? kCandidates : 1;
  const double ratio = std::pow(high / low, 1.0 / (kCandidates - 1));
  double global = low;
  for (int i = 0; i < candidates; ++i, global *= ratio) {
    const BatchChoice choice = ChoiceNear(nodes, replicas, std::min(global, high));
    if (choice.goodput > best.goodput) best = choice;
  }
  return best;
}

double GoodputModel::NearlyOptimalGoodput(int nodes, int replicas) const {
  const auto low = static_cast<double>(
      std::max(bounds_.initial, bounds_.min_atomic * static_cast<std::int64_t>(replicas)));
  const auto high = static_cast<double>(std::max(bounds_.initial, bounds_.max_global));
  if (low >= high) return Optimize(nodes, replicas).goodput;
  const double step = std::log(high / low) / (kCandidates - 1);
  const auto goodput_at = [&](int i) {
    return ChoiceNear(nodes, replicas, std::min(low * std::exp(step * i), high)).goodput;
  };
  // Every fourth, then those around the best of them.
  int best = 0;
  double most = goodput_at(0);
  const auto look_at = [&](int i) {
    if (i < 0 || i >= kCandidates) return;
    const double goodput = goodput_at(i);
    if (goodput <= most) return;
    most = goodput;
    best = i;
  };
  for (int i = kStride; i < kCandidates; i += kStride) look_at(i);
  look_at(kCandidates - 1);
  const int middle = best;
  for (int d = 1; d < kStride; ++d) {
    look_at(middle - d);
    look_at(middle + d);
  }
  return most;
}

BatchChoice GoodputModel::AtFixedGlobalBatch(int nodes, int replicas,
                                             std::int64_t global_batch_size) const {
  BatchChoice choice{.replicas = replicas};
  const std::int64_t share = CeilDivide(global_batch_size, replicas);
  if (global_batch_size < replicas || share < bounds_.min_atomic) return choice;
  std::int64_t s = CeilDivide(share, bounds_.max_atomic) - 1;
  if (replicas == 1 && bounds_.SplitsFixedAlone(share)) s = std::max<std::int64_t>(s, 1);
  if (s > 0 && !bounds_.accumulation) return choice;
  choice.accumulation_steps = s;
  choice.atomic_batch_size = CeilDivide(share, s + 1);
  choice.throughput =
      static_cast<double>(global_batch_size) /
      IterationTime(params_, nodes, replicas, static_cast<double>(choice.atomic_batch_size), s);
  choice.goodput = choice.throughput;
  return choice;
}

}  // namespace espalier
