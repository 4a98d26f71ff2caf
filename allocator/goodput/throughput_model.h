#pragma once

#include <cstdint>

namespace espalier {

// How long a training step takes (Pollux, Qiao et al., OSDI 2021, section 3.2). All in seconds,
// the betas per sample (c) or per further replica (n, r); gamma in [1, 10] is the overlap of the
// all-reduce with the backward pass, from none (1) to nearly complete (10).
struct ThroughputParams {
  double alpha_c = 0.1, beta_c = 0.01;  // one microbatch: constant, and per sample
  double alpha_n = 0.1, beta_n = 0.01;  // all-reduce between nodes: two replicas, each further one
  double alpha_r = 0.1, beta_r = 0.01;  // all-reduce within a node
  double gamma = 1.001;

  friend bool operator==(const ThroughputParams&, const ThroughputParams&) = default;
};

// Below, m is the atomic batch size (samples of one microbatch on one replica) and s the number of
// microbatches that are accumulated without an all-reduce before the one that has it.

// Time of one microbatch without all-reduce.
double GradTime(const ThroughputParams& p, double m);
// Time of one all-reduce. Requires nodes >= 1 and replicas >= nodes.
double SyncTime(const ThroughputParams& p, int nodes, int replicas);
// Time of the last microbatch, overlapped with its all-reduce:
// (GradTime^gamma + SyncTime^gamma)^(1/gamma).
double OptimTime(const ThroughputParams& p, int nodes, int replicas, double m);
// Time of one optimizer step: s * GradTime + OptimTime.
double IterationTime(const ThroughputParams& p, int nodes, int replicas, double m, std::int64_t s);
// Samples a second over all replicas.
double Throughput(const ThroughputParams& p, int nodes, int replicas, double m, std::int64_t s);

}  // namespace espalier
