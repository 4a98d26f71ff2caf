#include "trial_runner/collectives/collectives.h"

namespace espalier {
namespace {

template <typename T>
CollectiveBuffer BufferOf(CollectiveBuffer::Type type, const std::shared_ptr<std::vector<T>>& v) {
  return {.type = type,
          .start = v->data(),
          .count = static_cast<std::int64_t>(v->size()),
          .device = CollectiveBuffer::kHost,
          .owner = v};
}

}  // namespace

CollectiveBuffer CollectiveBuffer::Of(const std::shared_ptr<std::vector<float>>& v) {
  return BufferOf(Type::kFloat, v);
}
CollectiveBuffer CollectiveBuffer::Of(const std::shared_ptr<std::vector<double>>& v) {
  return BufferOf(Type::kDouble, v);
}
CollectiveBuffer CollectiveBuffer::Of(const std::shared_ptr<std::vector<std::int64_t>>& v) {
  return BufferOf(Type::kInt64, v);
}
CollectiveBuffer CollectiveBuffer::Of(const std::shared_ptr<std::vector<std::uint8_t>>& v) {
  return BufferOf(Type::kByte, v);
}

}  // namespace espalier
