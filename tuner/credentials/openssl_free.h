#pragma once

namespace espalier {

// Deleter of a std::unique_ptr to an object of OpenSSL, by the function that frees its kind.
template <auto Free>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

}  // namespace espalier
