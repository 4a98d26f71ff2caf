#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include "base/check.h"
#include "trial_runner/collectives/collectives.h"

// For the sources of this folder: a buffer as LibTorch sees it.

namespace espalier {

inline at::ScalarType ScalarTypeOf(CollectiveBuffer::Type type) {
  switch (type) {
    case CollectiveBuffer::Type::kFloat:
      return at::kFloat;
    case CollectiveBuffer::Type::kDouble:
      return at::kDouble;
    case CollectiveBuffer::Type::kInt64:
      return at::kLong;
    case CollectiveBuffer::Type::kByte:
      return at::kByte;
  }
  ESPALIER_CHECK(false, "unknown buffer type");
}

// One dimension, in the buffer's own memory, which it keeps alive.
inline at::Tensor TensorOf(const CollectiveBuffer& buffer) {
  const at::Device device =
      buffer.device == CollectiveBuffer::kHost
          ? at::Device(at::kCPU)
          : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(buffer.device));
  return at::from_blob(
      buffer.start, {buffer.count}, [owner = buffer.owner](void*) {},
      at::TensorOptions().dtype(ScalarTypeOf(buffer.type)).device(device));
}

}  // namespace espalier
