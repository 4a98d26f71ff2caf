#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <span>
#include <vector>

namespace espalier {

// Copies of tensors in the host's memory, with the values at the moment when they are begun. From a
// device there are a few large copies into pinned memory, whatever the number of tensors, and no
// thread waits for them before they are read. Each tensor has memory of its own for the code that
// writes it to a file. Only the training thread may begin copies; one thread, any, may await them.
class HostCopies {
 public:
  HostCopies() = default;
  // `as_from_device`: does with tensors of the host what it does with those of devices, for tests.
  explicit HostCopies(std::span<const at::Tensor> tensors, bool as_from_device = false);

  // As given: with the sizes, types and order of elements that the tensors had.
  const std::vector<at::Tensor>& Await() const;
  // The same tensors, possibly before their content has arrived.
  const std::vector<at::Tensor>& UnderWay() const { return copies_; }

 private:
  void CopyTogether(std::span<const at::Tensor> tensors, const std::vector<std::size_t>& which);

  std::vector<at::Tensor> copies_;
  std::vector<c10::Event> under_way_;
};

}  // namespace espalier
