#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace espalier {

// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Add(std::string_view bytes);
  // 32 bytes; nothing may be added afterwards.
  std::string Take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// HMAC-SHA256 (RFC 2104), 32 bytes: only a holder of the key can make it.
std::string HmacSha256(std::string_view key, std::string_view bytes);

}  // namespace espalier
