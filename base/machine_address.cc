#include "base/machine_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"

namespace espalier {

namespace {

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24U) == IN_LOOPBACKNET;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

bool LeadsElsewhere(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if ((one->ai_family == AF_INET || one->ai_family == AF_INET6) && !IsLoopback(one->ai_addr)) {
      return true;
    }
  }
  return false;
}

// The address that the routes choose towards a machine far away, which is sent nothing.
std::optional<std::string> AddressTowards(const std::string& numeric, int family) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(numeric.c_str(), "9", &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> far(found, freeaddrinfo);
  const FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  if (!socket.open() || connect(socket.get(), far->ai_addr, far->ai_addrlen) != 0 ||
      getsockname(socket.get(), address, &size) != 0 || IsLoopback(address)) {
    return std::nullopt;
  }
  char text[NI_MAXHOST] = {};
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return family == AF_INET6 ? absl::StrCat("[", text, "]") : text;
}

}  // namespace

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "node";
}

std::string NameForOtherMachines() { return NameForOtherMachines(HostName()); }

std::string NameForOtherMachines(const std::string& name) {
  if (LeadsElsewhere(name)) return name;
  // Of networks that are kept for documents (RFC 5737 and 3849).
  if (auto v4 = AddressTowards("192.0.2.1", AF_INET)) return *std::move(v4);
  if (auto v6 = AddressTowards("2001:db8::1", AF_INET6)) return *std::move(v6);
  return name;
}

}  // namespace espalier
