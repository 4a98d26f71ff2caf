#include "tuner/server/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace espalier {

bool ListenAddress::loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string ListenAddress::text() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

bool IsAddressOrLocalhost(std::string_view host) {
  if (host.starts_with('[')) return true;
  const std::string_view name = host.substr(0, host.find(':'));
  return name == "localhost" || name.find_first_not_of("0123456789.") == std::string_view::npos;
}

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("address \"", text, "\": HOST:PORT is needed, such as 127.0.0.1:7077"));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  ListenAddress address;
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return bad;
  }
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, address.port);
  if (address.host.empty() || parsed.ec != std::errc() || parsed.ptr != end || address.port < 0 ||
      address.port > 65535) {
    return bad;
  }
  return address;
}

absl::Status CheckFree(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  if (const int error =
          getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &raw);
      error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address.text(), ": ",
                                                   gai_strerror(error),
                                                   "; name a host of this machine"));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
  if (fd < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address.text(), ": ", std::strerror(errno)));
  }
  // Connections of an earlier process that linger in TIME_WAIT do not count as in use.
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const bool bound = bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1) == 0;
  const int error = errno;
  close(fd);
  if (bound) return absl::OkStatus();
  const char* remedy = error == EADDRINUSE ? "; end the process that has it, or choose another port"
                       : error == EACCES   ? "; choose a port of 1024 or more"
                                           : "; name an address of this machine";
  return absl::FailedPreconditionError(
      absl::StrCat("cannot listen on ", address.text(), ": ", std::strerror(error), remedy));
}

}  // namespace espalier
