#include "trial_runner/elastic/state_description.h"

#include <cstring>
#include <limits>

#include "base/status.h"

namespace espalier {
namespace {

// Each of an element, in bytes: more than any machine has memory for.
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

absl::Status EndsTooEarly() { return absl::DataLossError("training state ends too early"); }

absl::Status NoTensor() {
  return absl::DataLossError("training state has a tensor of a form that there is not");
}

// Whether a tensor may have this shape: no extent is negative, and its elements can be counted.
bool CanBe(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && elements > kMostElements / extent)) return false;
    elements *= extent;
  }
  return true;
}

}  // namespace

absl::Status StateDescription::Bytes(void* start, std::size_t size) {
  if (left_.size() < size) return EndsTooEarly();
  std::memcpy(start, left_.data(), size);
  left_.remove_prefix(size);
  return absl::OkStatus();
}

absl::StatusOr<std::int64_t> StateDescription::Integer() {
  std::int64_t value = 0;
  ESPALIER_RETURN_IF_ERROR(Bytes(&value, sizeof value));
  return value;
}

absl::StatusOr<double> StateDescription::Real() {
  double value = 0;
  ESPALIER_RETURN_IF_ERROR(Bytes(&value, sizeof value));
  return value;
}

absl::StatusOr<std::string_view> StateDescription::Text() {
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t size, Integer());
  if (size < 0 || left_.size() < static_cast<std::size_t>(size)) return EndsTooEarly();
  const std::string_view text = left_.substr(0, static_cast<std::size_t>(size));
  left_.remove_prefix(text.size());
  return text;
}

absl::StatusOr<TensorForm> StateDescription::Form() {
  TensorForm form;
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t type, Integer());
  if (type < 0) return form;
  if (type > std::numeric_limits<std::int8_t>::max()) return NoTensor();
  form.defined = true;
  form.type = static_cast<std::int8_t>(type);
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t dimensions, Integer());
  if (dimensions < 0) return NoTensor();
  for (std::int64_t i = 0; i < dimensions; ++i) {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t extent, Integer());
    form.shape.push_back(extent);
  }
  ESPALIER_ASSIGN_OR_RETURN(const std::int64_t ordered, Integer());
  for (std::int64_t i = 0; ordered != 0 && i < dimensions; ++i) {
    ESPALIER_ASSIGN_OR_RETURN(const std::int64_t stride, Integer());
    if (stride < 0) return NoTensor();
    form.strides.push_back(stride);
  }
  if (!CanBe(form.shape)) return NoTensor();
  return form;
}

}  // namespace espalier
