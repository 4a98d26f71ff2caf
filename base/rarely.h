#pragma once

#include <memory>
#include <utility>

namespace espalier {

// A value that most of its many owners have as T{} makes it. It takes a pointer then, and is kept
// apart where it differs.
template <typename T>
class Rarely {
 public:
  Rarely() = default;
  Rarely(T value) { *this = std::move(value); }  // NOLINT(google-explicit-constructor): it is a T
  Rarely(const Rarely& other)
      : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Rarely(Rarely&&) noexcept = default;
  ~Rarely() = default;

  Rarely& operator=(const Rarely& other) {
    if (this != &other) *this = *other;
    return *this;
  }
  Rarely& operator=(Rarely&&) noexcept = default;
  Rarely& operator=(T value) {
    value_ = value == T{} ? nullptr : std::make_unique<T>(std::move(value));
    return *this;
  }

  const T& operator*() const {
    static const T usual{};
    return value_ ? *value_ : usual;
  }
  const T* operator->() const { return &**this; }

  // To be changed. Keeps it apart from now on, until it is assigned to.
  T& edit() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }

  friend bool operator==(const Rarely& a, const Rarely& b) { return *a == *b; }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace espalier
