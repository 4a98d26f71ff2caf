#include "trial_runner/elastic/sample_order.h"

#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace espalier {

std::span<const std::int64_t> SampleOrder::Slice(std::int64_t epoch, const SampleSlice& slice) {
  ESPALIER_CHECK(slice.begin >= 0 && slice.begin + slice.size <= size_, "slice outside the epoch");
  if (epoch != epoch_) {
    order_.resize(static_cast<std::size_t>(size_));
    std::iota(order_.begin(), order_.end(), 0);
    Random random(MixSeed(seed_, static_cast<std::uint64_t>(epoch)));
    for (std::size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1], order_[random.Below(i)]);
    }
    epoch_ = epoch;
  }
  return std::span(order_).subspan(static_cast<std::size_t>(slice.begin),
                                   static_cast<std::size_t>(slice.size));
}

}  // namespace espalier
