#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace espalier {

// How a tensor is told of: its type is a number of LibTorch's.
struct TensorForm {
  bool defined = false;
  std::int8_t type = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // of memory without gaps in another order; else none
};

// Reads a training state's description: values one after the other, each as it was written, in the
// machine's byte order. All errors are DATA_LOSS. What it reads from must outlive it.
class StateDescription {
 public:
  explicit StateDescription(std::string_view bytes) : left_(bytes) {}

  absl::StatusOr<std::int64_t> Integer();
  absl::StatusOr<double> Real();
  absl::StatusOr<std::string_view> Text();  // lies in the description
  // Of a tensor that could be: its elements can be counted, and strides are not negative.
  absl::StatusOr<TensorForm> Form();
  // Copies the next bytes to `start`.
  absl::Status Bytes(void* start, std::size_t size);

 private:
  std::string_view left_;
};

}  // namespace espalier
