#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace espalier {

// Copies of tensors in the host's memory, with the values at the moment when they are begun. From a
// device there are a few large copies, whatever the number of tensors, and no thread waits for them
// before they are read. Each tensor has memory of its own for the code that writes it to a file.
// Only the training thread may begin copies; one thread, any, may await them.
//
// Copies go into pinned memory or, where the device has room, first into its own: pinning takes a
// second for 1.5 GB (an H100's host, 2026-11), and the device's memory can be copied in a
// millisecond. Whoever awaits these brings them to the host in small pieces.
class HostCopies {
 public:
  // How many bytes of a device copies may take.
  using Room = std::int64_t (*)(c10::Device);

  HostCopies() = default;
  // Without `room` they go into pinned memory. `as_from_device`: does with tensors of the host what
  // it does with those of devices, for tests.
  explicit HostCopies(std::span<const at::Tensor> tensors, Room room = nullptr,
                      bool as_from_device = false);

  // As given: with the sizes, types and order of elements that the tensors had.
  const std::vector<at::Tensor>& Await() const;
  // The same tensors, possibly before their content has arrived.
  const std::vector<at::Tensor>& UnderWay() const { return copies_; }

 private:
  struct Transfer {
    at::Tensor here;
    at::Tensor there;                    // undefined where the copy goes to the host at once
    std::optional<c10::Event> finished;  // of the device's copy; none on the CPU
  };

  void CopyTogether(std::span<const at::Tensor> tensors, const std::vector<std::size_t>& which,
                    Room room);
  static void Bring(const Transfer& transfer);

  std::vector<at::Tensor> copies_;
  mutable std::vector<Transfer> under_way_;
};

}  // namespace espalier
