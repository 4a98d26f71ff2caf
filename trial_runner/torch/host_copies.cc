#include "trial_runner/torch/host_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <string>
#include <utility>

namespace espalier {
namespace {

// Smaller ones are put together on the device first, so many bytes at a time.
constexpr std::size_t kSmallBytes = 1 << 20;
constexpr std::size_t kTogetherBytes = 32 << 20;

// The elements in the order in which they lie in memory, if that has no gaps.
at::Tensor Flat(const at::Tensor& tensor) {
  if (!tensor.is_non_overlapping_and_dense()) return tensor.contiguous().view(-1);
  return tensor.as_strided({tensor.numel()}, {1});
}

// A part of `all`, as memory of its own: a file gets the whole of what a tensor's memory is part
// of.
at::Tensor PartOf(const at::Tensor& all, std::int64_t begin, const at::Tensor& like) {
  const at::Tensor part = all.narrow(0, begin, like.numel());
  const at::Tensor ordered = like.is_non_overlapping_and_dense() ? like : like.contiguous();
  return at::from_blob(
      part.mutable_data_ptr(), like.sizes(), ordered.strides(), [all](void*) {},
      at::TensorOptions(like.scalar_type()));
}

}  // namespace

HostCopies::HostCopies(std::span<const at::Tensor> tensors, bool as_from_device) {
  const at::NoGradGuard no_grad;
  copies_.resize(tensors.size());
  std::map<std::pair<std::string, at::ScalarType>, std::vector<std::size_t>> together;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& t = tensors[i];
    const bool packs = t.layout() == at::kStrided && t.numel() > 0 && !t.is_conj() && !t.is_neg() &&
                       (as_from_device || !t.is_cpu());
    if (packs) {
      together[{t.device().str(), t.scalar_type()}].push_back(i);
    } else {
      copies_[i] = t.detach().to(at::kCPU, t.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    }
  }
  for (const auto& [kind, which] : together) CopyTogether(tensors, which);
}

void HostCopies::CopyTogether(std::span<const at::Tensor> tensors,
                              const std::vector<std::size_t>& which) {
  const at::Tensor& first = tensors[which.front()];
  std::int64_t elements = 0;
  for (const std::size_t i : which) elements += tensors[i].numel();
  const at::Tensor all =
      at::empty({elements}, at::TensorOptions(first.scalar_type()).pinned_memory(first.is_cuda()));
  std::vector<at::Tensor> small;
  std::size_t small_bytes = 0;
  std::int64_t end = 0;    // of what is in `all` and in `small`
  std::int64_t begin = 0;  // of what is in `small`
  const auto copy_small = [&] {
    if (small.empty()) return;
    all.narrow(0, begin, end - begin).copy_(at::cat(small), /*non_blocking=*/true);
    small.clear();
    small_bytes = 0;
  };
  for (const std::size_t i : which) {
    const at::Tensor tensor = tensors[i].detach();
    copies_[i] = PartOf(all, end, tensor);
    if (tensor.nbytes() >= kSmallBytes || small_bytes + tensor.nbytes() > kTogetherBytes) {
      copy_small();
    }
    if (tensor.nbytes() >= kSmallBytes) {
      all.narrow(0, end, tensor.numel()).copy_(Flat(tensor), /*non_blocking=*/true);
    } else {
      if (small.empty()) begin = end;
      small.push_back(Flat(tensor));
      small_bytes += tensor.nbytes();
    }
    end += tensor.numel();
  }
  copy_small();
  const c10::Device device = first.device();
  if (device.is_cpu()) return;
  c10::Event& copied = under_way_.emplace_back(device.type());
  copied.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

const std::vector<at::Tensor>& HostCopies::Await() const {
  for (const c10::Event& copied : under_way_) copied.synchronize();
  return copies_;
}

}  // namespace espalier
