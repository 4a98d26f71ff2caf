#include "allocator/goodput/throughput_model.h"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {
// A lone replica does not all-reduce; not zero, so that the logarithm exists.
constexpr double kNoSyncTime = 1e-8;
}  // namespace

double GradTime(const ThroughputParams& p, double m) { return p.alpha_c + p.beta_c * m; }

double SyncTime(const ThroughputParams& p, int nodes, int replicas) {
  const double further = std::max(static_cast<double>(replicas - 2), 1e-8);
  if (nodes > 1) return p.alpha_n + p.beta_n * further;
  if (replicas > 1) return p.alpha_r + p.beta_r * further;
  return kNoSyncTime + kNoSyncTime * further;
}

double OptimTime(const ThroughputParams& p, int nodes, int replicas, double m) {
  const double grad = GradTime(p, m);
  const double sync = SyncTime(p, nodes, replicas);
  // Factoring the longer one out keeps the powers from under- or overflowing.
  const double longer = std::max(grad, sync);
  const double shorter = std::min(grad, sync);
  return longer * std::pow(1.0 + std::pow(shorter / longer, p.gamma), 1.0 / p.gamma);
}

double IterationTime(const ThroughputParams& p, int nodes, int replicas, double m, std::int64_t s) {
  return static_cast<double>(s) * GradTime(p, m) + OptimTime(p, nodes, replicas, m);
}

double Throughput(const ThroughputParams& p, int nodes, int replicas, double m, std::int64_t s) {
  const double samples = replicas * m * static_cast<double>(s + 1);
  return samples / IterationTime(p, nodes, replicas, m, s);
}

}  // namespace espalier
