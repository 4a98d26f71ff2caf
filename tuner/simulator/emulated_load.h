#pragma once

#include <cstdint>
#include <memory>

#include "tuner/simulator/workload.h"

namespace espalier {

// What examples/emulated is told: the throughput model of a slot and its curves' constants.
struct EmulatedProfile {
  double alpha_c_s = 0.002, beta_c_s = 0.001;   // a microbatch; a sample of it
  double alpha_r_s = 0.002, beta_r_s = 0.0002;  // an all-reduce of two; each further replica
  double noise_scale = 1500;                    // samples
  double best_lr = 0.1;                         // at batch size 128
  double jitter = 0.002;                        // of the metric
};

// examples/emulated as the load of a simulated study: the same formulas, so that a study gives the
// same curves and step times as the real program does. The study's space needs lr and batch_size.
struct EmulatedLoadOptions {
  EmulatedProfile profile;
  std::int64_t epochs = 9;
  std::int64_t samples = 6144;  // an epoch
  StudySpec study;              // as its file says
};
std::unique_ptr<Workload> MakeEmulatedLoad(EmulatedLoadOptions options);

}  // namespace espalier
