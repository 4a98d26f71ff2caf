#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

// The token that a client sends to be let in: esp1.ID.SECRET, or esp1.ID.SECRET.HASH with the
// SHA-256 of the certificate by which the service is known. The service keeps a hash of the secret
// only.
struct AccessToken {
  std::string id;                // eight hexadecimal digits; a replica's: "trial-3-17"
  std::string secret;            // 64
  std::string certificate_hash;  // 64; empty: the connection is in the clear, or by a known CA
  std::string text() const;
};

inline constexpr std::size_t kTokenIdBytes = 4;
inline constexpr std::size_t kTokenSecretBytes = 32;

AccessToken NewAccessToken(const std::string& certificate_hash);

// Whether a text means to be such a token; others are shared tokens, upon which user and service
// agreed.
bool LooksLikeAccessToken(std::string_view text);

// The error says what is wrong with the text, and not what it holds.
absl::StatusOr<AccessToken> ParseAccessToken(std::string_view text);

// The certificate's hash in a token; empty where it has none, or is a shared token.
std::string PinOf(std::string_view token);

}  // namespace espalier
