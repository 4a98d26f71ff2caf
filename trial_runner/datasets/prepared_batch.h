#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "trial_runner/elastic/microbatch_forecast.h"

namespace espalier {

// A batch to train on. Its type is known only to what makes it and what uses it.
using PreparedBatch = std::shared_ptr<void>;

struct BatchRequest {
  Microbatch microbatch;
  std::vector<std::int64_t> indices;  // of its samples; empty for a stream, which has none
};

// Makes a batch. It may throw, as it calls the user's code. Used by one thread.
using PrepareBatch = std::function<absl::StatusOr<PreparedBatch>(const BatchRequest& request)>;

}  // namespace espalier
