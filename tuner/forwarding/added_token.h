#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

inline constexpr std::size_t kMaxForwardedHead = 64 << 10;  // bytes of a request before its body

// Adds a token to each request that a client makes on one connection, for programs that can send
// none. All else passes as it is, and what the service answers is not looked at. A request that
// shows a token keeps it. Used by one thread.
class AddedToken {
 public:
  virtual ~AddedToken() = default;

  // Appends to `out` what the service is to get of what has come. After an error, which says what
  // is wrong with the request, no more.
  virtual absl::Status Pass(std::string_view in, std::string& out) = 0;
};

// A header "Authorization" in each head of HTTP/1.1 (RFC 9112). A request whose Host is no name of
// loopback is refused: a page of another site has found this port under a name of its own.
std::unique_ptr<AddedToken> AddTokenToHttp1(const std::string& token);

// A field "authorization" at the end of each stream's first header block (RFC 9113, 8.1), in a
// CONTINUATION frame of its own: as a literal that is never indexed (RFC 7541, 6.2.3) it changes no
// table, so no other byte needs to.
std::unique_ptr<AddedToken> AddTokenToHttp2(const std::string& token);

}  // namespace espalier
