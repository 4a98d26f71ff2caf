#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "trial_runner/datasets/prefetcher.h"
#include "trial_runner/elastic/microbatch_forecast.h"
#include "trial_runner/elastic/sample_order.h"

namespace espalier {

// Gives a loader its batches: made when they are wanted, or made ahead of it by threads, as far as
// they can be predicted. Predictions that turn out wrong (the group or the batch has changed) are
// dropped and asked for anew. One thread.
class BatchFeed {
 public:
  // `make_prepare` is called once for each thread that prepares. With 0 `threads` the caller's own
  // thread prepares; otherwise each of them prepares up to `ahead` batches ahead. Without an order
  // the requests have no indices.
  BatchFeed(int threads, int ahead, std::optional<SampleOrder> order,
            const std::function<PrepareBatch()>& make_prepare);

  // Returns the batch of this microbatch, or the error of preparing it; throws what preparing it
  // threw. `forecast` is called where an earlier prediction is wrong; it has to begin with
  // `wanted`.
  absl::StatusOr<PreparedBatch> Next(const Microbatch& wanted,
                                     const std::function<MicrobatchForecast()>& forecast);

 private:
  BatchRequest RequestFor(const Microbatch& microbatch);
  void ReadAhead();

  std::optional<SampleOrder> order_;
  PrepareBatch prepare_;  // the caller's own, if there are no threads
  std::size_t ahead_ = 0;
  MicrobatchForecast forecast_;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace espalier
