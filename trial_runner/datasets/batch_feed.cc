#include "trial_runner/datasets/batch_feed.h"

#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier {

BatchFeed::BatchFeed(int threads, int ahead, std::optional<SampleOrder> order,
                     const std::function<PrepareBatch()>& make_prepare)
    : order_(std::move(order)),
      ahead_(static_cast<std::size_t>(threads) * static_cast<std::size_t>(ahead)) {
  if (threads == 0) {
    prepare_ = make_prepare();
    return;
  }
  std::vector<PrepareBatch> each;
  for (int i = 0; i < threads; ++i) each.push_back(make_prepare());
  prefetcher_ = std::make_unique<Prefetcher>(std::move(each));
}

absl::StatusOr<PreparedBatch> BatchFeed::Next(const Microbatch& wanted,
                                              const std::function<MicrobatchForecast()>& forecast) {
  if (!prefetcher_) return prepare_(RequestFor(wanted));
  if (prefetcher_->size() == 0 || prefetcher_->front() != wanted) {
    prefetcher_->Clear();
    forecast_ = forecast();
    ReadAhead();
    ESPALIER_CHECK(prefetcher_->size() > 0 && prefetcher_->front() == wanted,
                   "the forecast begins with what is wanted");
  }
  absl::StatusOr<PreparedBatch> batch = prefetcher_->Take();
  ReadAhead();
  return batch;
}

BatchRequest BatchFeed::RequestFor(const Microbatch& microbatch) {
  BatchRequest request{microbatch, {}};
  if (order_) {
    const std::span<const std::int64_t> of = order_->Slice(microbatch.epoch, microbatch.slice);
    request.indices.assign(of.begin(), of.end());
  }
  return request;
}

void BatchFeed::ReadAhead() {
  while (prefetcher_->size() < ahead_) {
    const std::optional<Microbatch> next = forecast_.Next();
    if (!next) return;
    prefetcher_->Request(RequestFor(*next));
  }
}

}  // namespace espalier
