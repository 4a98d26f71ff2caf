#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace espalier {

template <typename T>
concept TupleOfFields = requires {
  std::tuple_size<T>::value;
};
// torch::data::Example, and whatever is built like it.
template <typename T>
concept InputAndTarget = requires(T t) {
  T(t.data, t.target);
};

// How the examples of a batch become one: field by field, tensors as a new first dimension [n,
// ...], numbers as a vector [n] (whole ones as int64). Fields may be nested. For another kind of
// example specialise this, or override what makes the batches.
template <typename Example>
struct Stacking;

template <>
struct Stacking<at::Tensor> {
  using Batch = at::Tensor;
  static Batch Of(const std::vector<at::Tensor>& examples) { return at::stack(examples); }
};

template <typename Number>
requires std::is_arithmetic_v<Number>
struct Stacking<Number> {
  using Batch = at::Tensor;
  static Batch Of(const std::vector<Number>& examples) {
    using Stored = std::conditional_t<std::is_integral_v<Number>, std::int64_t, Number>;
    at::Tensor batch = at::empty({static_cast<std::int64_t>(examples.size())},
                                 c10::CppTypeToScalarType<Stored>::value);
    auto* out = batch.template mutable_data_ptr<Stored>();
    for (const Number example : examples) *out++ = static_cast<Stored>(example);
    return batch;
  }
};

template <typename Example, typename FieldOf>
auto StackField(const std::vector<Example>& examples, const FieldOf& field_of) {
  using Field = std::remove_cvref_t<decltype(field_of(examples.front()))>;
  std::vector<Field> fields;
  fields.reserve(examples.size());
  for (const Example& example : examples) fields.push_back(field_of(example));
  return Stacking<Field>::Of(fields);
}

template <template <typename...> typename Row, typename... Fields>
requires TupleOfFields<Row<Fields...>>
struct Stacking<Row<Fields...>> {
  using Batch = Row<typename Stacking<Fields>::Batch...>;
  static Batch Of(const std::vector<Row<Fields...>>& examples) {
    return [&]<std::size_t... kField>(std::index_sequence<kField...>) {
      return Batch{StackField(
          examples, [](const auto& row) -> const auto& { return std::get<kField>(row); })...};
    }
    (std::index_sequence_for<Fields...>());
  }
};

template <InputAndTarget Example>
struct Stacking<Example> {
  using Batch = Example;
  static Batch Of(const std::vector<Example>& examples) {
    return Batch(StackField(
                     examples, [](const Example& e) -> const auto& { return e.data; }),
                 StackField(
                     examples, [](const Example& e) -> const auto& { return e.target; }));
  }
};

template <typename Example>
using Stacked = typename Stacking<Example>::Batch;

// Calls `change` with each tensor that a batch consists of.
template <typename Batch, typename Change>
void ForEachTensor(Batch& batch, const Change& change) {
  if constexpr (std::same_as<Batch, at::Tensor>) {
    change(batch);
  } else if constexpr (TupleOfFields<Batch>) {
    std::apply([&](auto&... fields) { (ForEachTensor(fields, change), ...); }, batch);
  } else if constexpr (InputAndTarget<Batch>) {
    ForEachTensor(batch.data, change);
    ForEachTensor(batch.target, change);
  } else {
    for (auto& part : batch) ForEachTensor(part, change);
  }
}

}  // namespace espalier
