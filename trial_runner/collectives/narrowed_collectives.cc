#include "trial_runner/collectives/narrowed_collectives.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "trial_runner/collectives/buffer_tensor.h"

namespace espalier {

void NarrowedCollectives::StartAllReduceSum(const CollectiveBuffer& buffer) {
  begun_.push_back({.buffer = buffer, .root = 0, .sum = true});
}

void NarrowedCollectives::StartBroadcast(const CollectiveBuffer& buffer, int root) {
  begun_.push_back({.buffer = buffer, .root = root, .sum = false});
}

absl::Status NarrowedCollectives::WaitAll() {
  for (const Begun& each : std::exchange(begun_, {})) {
    if (each.sum) ESPALIER_RETURN_IF_ERROR(Sum(each.buffer));
    ESPALIER_RETURN_IF_ERROR(Spread(each.buffer, each.root));
  }
  return whole_.WaitAll();
}

// Into rank 0's buffer.
absl::Status NarrowedCollectives::Sum(const CollectiveBuffer& buffer) {
  if (rank_ != 0) {
    whole_.StartSend(buffer, 0);
    return whole_.WaitAll();
  }
  const at::NoGradGuard no_grad;
  at::Tensor total = TensorOf(buffer);
  for (int from = 1; from < size_; ++from) {
    const auto part = std::make_shared<at::Tensor>(at::empty_like(total));
    CollectiveBuffer into = buffer;
    into.start = part->mutable_data_ptr();
    into.owner = part;
    whole_.StartReceive(into, from);
    ESPALIER_RETURN_IF_ERROR(whole_.WaitAll());
    total.add_(*part);
  }
  return absl::OkStatus();
}

absl::Status NarrowedCollectives::Spread(const CollectiveBuffer& buffer, int root) {
  if (rank_ != root) {
    whole_.StartReceive(buffer, root);
    return whole_.WaitAll();
  }
  for (int to = 0; to < size_; ++to) {
    if (to != root) whole_.StartSend(buffer, to);
  }
  return whole_.WaitAll();
}

absl::StatusOr<std::vector<std::vector<std::int64_t>>> NarrowedCollectives::AllGather(
    const std::vector<std::int64_t>& values) {
  const auto count = std::ssize(values);
  auto all =
      std::make_shared<std::vector<std::int64_t>>(values.size() * static_cast<std::size_t>(size_));
  std::copy(values.begin(), values.end(), all->begin() + count * rank_);
  ESPALIER_RETURN_IF_ERROR(AllReduceSum(CollectiveBuffer::Of(all)));
  std::vector<std::vector<std::int64_t>> by_rank;
  for (int rank = 0; rank < size_; ++rank) {
    by_rank.emplace_back(all->begin() + count * rank, all->begin() + count * (rank + 1));
  }
  return by_rank;
}

}  // namespace espalier
