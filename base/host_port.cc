#include "base/host_port.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace espalier {
namespace {

constexpr int kMaxPort = 65535;

}  // namespace

std::string HostPort::text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::Status CheckServiceAddress(std::string_view what, const std::string& address) {
  const bool is_url = address.find("://") != std::string::npos;
  if (!is_url && address.find(':') != std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(what), " \"", address, "\": must be HOST:PORT",
                   is_url ? ", not a URL" : "", ", e.g. 127.0.0.1:7077"));
}

std::string Http1At(const std::string& address, std::string_view grpc_error) {
  if (grpc_error.find("connect an http1.x server") == std::string_view::npos) return "";
  return absl::StrCat("\"", address,
                      "\" speaks HTTP/1: it may be a service's --http port, and its --grpc port is "
                      "needed");
}

bool IsShutOut(std::string_view grpc_error) {
  return grpc_error.find("Socket closed") != std::string_view::npos ||
         grpc_error.find("reset by peer") != std::string_view::npos;
}

CallLoss LossOf(std::string_view grpc_error) {
  const auto says = [grpc_error](std::string_view words) {
    return grpc_error.find(words) != std::string_view::npos;
  };
  if (!says("failed to connect to all addresses") && !says("DNS resolution failed")) {
    return CallLoss::kUnanswered;
  }
  return IsShutOut(grpc_error) || says("Handshake read failed") ? CallLoss::kBrokenOff
                                                                : CallLoss::kNotConnected;
}

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "address \"", text, "\": HOST:PORT is needed, such as 127.0.0.1:7077 or [::1]:7077"));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  std::string host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return bad;
  }
  HostPort address{host, 0};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
  if (host.empty() || parsed.ec != std::errc() || parsed.ptr != end || address.port < 0 ||
      address.port > kMaxPort) {
    return bad;
  }
  return address;
}

}  // namespace espalier
