#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace espalier {

// Where something listens: "10.0.0.1:7077", "oak:7077", "[::1]:7077". The host is without brackets.
struct HostPort {
  std::string host;
  int port = 0;

  std::string text() const;
};

// Where a gRPC service is said to be: HOST:PORT in any form that gRPC takes, and no URL. `what`
// names the option in the error.
absl::Status CheckServiceAddress(std::string_view what, const std::string& address);

// What to tell of the address where gRPC's error says that HTTP/1 is spoken there; else empty.
std::string Http1At(const std::string& address, std::string_view grpc_error);

// Whether gRPC's error, of the code UNAVAILABLE, is what becomes of who does not use TLS where the
// service does.
bool IsShutOut(std::string_view grpc_error);

// What has become of a call, by gRPC's error of the code UNAVAILABLE: no connection came about for
// it; one broke off before the call was made; or it was made, and has no answer.
enum class CallLoss { kNotConnected, kBrokenOff, kUnanswered };
CallLoss LossOf(std::string_view grpc_error);

// The error quotes the text.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);

}  // namespace espalier
