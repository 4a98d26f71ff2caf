#pragma once

#include <string>

namespace espalier {

inline constexpr const char* kDefaultService = "127.0.0.1:7077";

struct ClientOptions {
  std::string address = kDefaultService;
  // The access token. Empty: none. One with the hash of a certificate says that the service speaks
  // TLS, and with which certificate.
  std::string token;
  // PEM of the roots to trust instead; both empty: the connection is in the clear.
  std::string tls_roots{};
  double timeout_s = 30;        // of one call
  bool wait_for_ready = false;  // keep trying to connect until the timeout
};

}  // namespace espalier
