#include "tuner/base/host_port.h"

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
