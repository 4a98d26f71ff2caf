#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trial_runner/collectives/collectives.h"
#include "trial_runner/elastic/state_description.h"
#include "trial_runner/torch/group/shared_state.h"

namespace espalier {

// Writes a StateOffer and reads it again: values one after the other, each read as it was written.
// Tensors of less than kLargeBytes lie between them, the memory of others is given along. Tensors
// may be on any device. Both ends are the same program on machines of one byte order.
inline constexpr std::size_t kLargeBytes = 64 << 10;

// Within this process, where the memory is not the same anyway. Both have one size.
void CopyMemory(const CollectiveBuffer& from, const CollectiveBuffer& to);

class StateWriter {
 public:
  void Integer(std::int64_t value);
  void Real(double value);
  void Text(std::string_view text);
  void Tensor(const at::Tensor& tensor);  // may be undefined

  StateOffer Take() &&;

 private:
  // A place in the description, and the tensor whose content belongs there.
  struct Gap {
    std::size_t begin = 0;
    at::Tensor tensor;
  };

  void Bytes(const void* start, std::size_t size);

  StateOffer offer_{std::make_shared<std::vector<std::uint8_t>>(), {}};
  std::vector<Gap> gaps_;
};

class StateReader {
 public:
  // `aside`: large tensors arrive beside their targets, to be copied when all have arrived.
  explicit StateReader(const std::vector<std::uint8_t>& description, bool aside = false)
      : aside_(aside),
        from_({reinterpret_cast<const char*>(description.data()), description.size()}) {}

  absl::StatusOr<std::int64_t> Integer() { return from_.Integer(); }
  absl::StatusOr<double> Real() { return from_.Real(); }
  absl::StatusOr<std::string_view> Text() { return from_.Text(); }  // lies in the description
  // Into a tensor of the same shape and type, in its memory. `name` is for the error.
  absl::Status TensorInto(const at::Tensor& tensor, const std::string& name);
  // Into `tensor` if it fits, else into a new one on that device, with elements in the same order
  // as in the sender's tensor; undefined if the sender's was.
  absl::Status AnyTensor(at::Tensor& tensor, at::Device device);

  // Where the large tensors go.
  const std::vector<CollectiveBuffer>& expected() const { return expected_; }
  // A tensor that has to be copied when it has arrived, since the target's memory has gaps.
  struct Detour {
    at::Tensor arrived;
    at::Tensor target;
  };
  std::vector<Detour> TakeDetours() { return std::move(detours_); }

 private:
  absl::Status Content(const at::Tensor& tensor);

  const bool aside_;
  StateDescription from_;
  std::vector<CollectiveBuffer> expected_;
  std::vector<Detour> detours_;
};

}  // namespace espalier
