#include "trial_runner/torch/process/host_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>

namespace espalier {
namespace {

// Smaller ones are put together on the device first, so many bytes at a time.
constexpr std::size_t kSmallBytes = 1 << 20;
constexpr std::size_t kTogetherBytes = 32 << 20;
// By which copies come from the device's memory to the host's, two at a time.
constexpr std::int64_t kPinnedBytes = 16 << 20;

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

// Undefined where the device has no room for it.
at::Tensor SpaceOn(c10::Device device, std::int64_t elements, at::ScalarType type,
                   HostCopies::Room room) {
  const auto bytes = elements * static_cast<std::int64_t>(c10::elementSize(type));
  if (room == nullptr || room(device) < bytes) return {};
  try {
    return at::empty({elements}, at::TensorOptions(type).device(device));
  } catch (const c10::OutOfMemoryError&) {
    return {};
  }
}

// Brings the elements of a device's tensor into memory of the host by a few pieces of pinned
// memory.
class PieceByPiece {
 public:
  PieceByPiece(const at::Tensor& there, const at::Tensor& here, c10::Stream stream)
      : there_(there), here_(here), stream_(stream), size_(kPinnedBytes / there.element_size()) {}

  void Run() {
    const c10::StreamGuard guard(stream_);
    const auto options = at::TensorOptions(there_.scalar_type()).pinned_memory(true);
    const std::int64_t size = std::min(size_, there_.numel());
    std::array<Piece, 2> pieces{
        Piece{at::empty({size}, options), c10::Event(stream_.device_type())},
        Piece{at::empty({size}, options), c10::Event(stream_.device_type())}};
    Begin(0, pieces[0]);
    std::size_t i = 0;
    for (std::int64_t begin = 0; begin < there_.numel(); begin += size_, ++i) {
      if (begin + size_ < there_.numel()) Begin(begin + size_, pieces[(i + 1) % 2]);
      End(begin, pieces[i % 2]);
    }
  }

 private:
  struct Piece {
    at::Tensor pinned;
    c10::Event arrived;
  };

  std::int64_t CountFrom(std::int64_t begin) const {
    return std::min(size_, there_.numel() - begin);
  }
  void Begin(std::int64_t begin, Piece& piece) {
    const std::int64_t count = CountFrom(begin);
    piece.pinned.narrow(0, 0, count).copy_(there_.narrow(0, begin, count), /*non_blocking=*/true);
    piece.arrived.record(stream_);
  }
  void End(std::int64_t begin, const Piece& piece) {
    piece.arrived.synchronize();
    const at::Tensor here = here_.narrow(0, begin, CountFrom(begin));
    std::memcpy(here.mutable_data_ptr(), piece.pinned.const_data_ptr(), here.nbytes());
  }

  const at::Tensor& there_;
  const at::Tensor& here_;
  const c10::Stream stream_;
  const std::int64_t size_;  // of a piece, in elements
};

}  // namespace

HostCopies::HostCopies(std::span<const at::Tensor> tensors, Room room, bool as_from_device) {
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
  for (const auto& [kind, which] : together) CopyTogether(tensors, which, room);
}

void HostCopies::CopyTogether(std::span<const at::Tensor> tensors,
                              const std::vector<std::size_t>& which, Room room) {
  const at::Tensor& first = tensors[which.front()];
  std::int64_t elements = 0;
  for (const std::size_t i : which) elements += tensors[i].numel();
  const at::Tensor there = SpaceOn(first.device(), elements, first.scalar_type(), room);
  const bool pinned = first.is_cuda() && !there.defined();
  const at::Tensor here =
      at::empty({elements}, at::TensorOptions(first.scalar_type()).pinned_memory(pinned));
  const at::Tensor& all = there.defined() ? there : here;
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
    copies_[i] = PartOf(here, end, tensor);
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
  Transfer& transfer = under_way_.emplace_back(Transfer{here, there, std::nullopt});
  const c10::Device device = first.device();
  if (device.is_cpu()) return;
  transfer.finished.emplace(device.type());
  transfer.finished->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

void HostCopies::Bring(const Transfer& transfer) {
  const at::NoGradGuard no_grad;
  if (!transfer.there.defined()) {
    if (transfer.finished) transfer.finished->synchronize();
  } else if (!transfer.finished) {
    transfer.here.copy_(transfer.there);
  } else {
    // Beside what the device does meanwhile.
    const c10::Device device = transfer.there.device();
    const c10::Stream stream =
        c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    transfer.finished->block(stream);
    PieceByPiece(transfer.there, transfer.here, stream).Run();
  }
}

const std::vector<at::Tensor>& HostCopies::Await() const {
  for (const Transfer& transfer : under_way_) Bring(transfer);
  under_way_.clear();  // with the device's memory, which nothing reads any more
  return copies_;
}

}  // namespace espalier
