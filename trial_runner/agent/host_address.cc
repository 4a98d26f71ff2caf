#include "trial_runner/agent/host_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file_descriptor.h"
#include "base/host_port.h"
#include "base/local_end.h"

namespace espalier {
namespace {

bool IsIpv6(const std::string& address) { return absl::StrContains(address, ':'); }

// The address as text; none if it is not one of the internet, or of one link only.
std::optional<std::string> TextOf(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  socklen_t size = sizeof(sockaddr_in);
  if (address->sa_family == AF_INET6) {
    if (IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr)) {
      return std::nullopt;
    }
    size = sizeof(sockaddr_in6);
  } else if (address->sa_family != AF_INET) {
    return std::nullopt;
  }
  char text[NI_MAXHOST];
  if (getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return text;
}

std::string Listed(const std::vector<HostAddress>& addresses) {
  return absl::StrJoin(addresses, ", ", [](std::string* out, const HostAddress& host) {
    absl::StrAppend(out, host.address, " (", host.interface, ")");
  });
}

// The numeric address in its usual spelling; empty: it is none.
std::string Canonical(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0) return "";
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  return TextOf(found->ai_addr).value_or("");
}

// The local end of a connection to `peer`, as the routes are now. A datagram socket that is
// connected sends nothing.
absl::StatusOr<std::string> LocalEnd(const HostPort& peer) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = absl::StrCat(peer.port);
  if (const int error = getaddrinfo(peer.host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(peer.text(), ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  const FileDescriptor fd(socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (!fd.open() || connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) {
    return absl::UnavailableError(absl::StrCat(peer.text(), ": ", std::strerror(errno)));
  }
  const auto text = TextOf(reinterpret_cast<const sockaddr*>(&local));
  if (text) return *text;
  return absl::UnavailableError(
      absl::StrCat(peer.text(),
                   " is reached from an address that is valid on one link only: name one with "
                   "--address or --interface"));
}

}  // namespace

bool HostAddress::loopback() const { return IsLoopback(address); }

std::vector<HostAddress> OwnAddresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const absl::Cleanup free_all = [all] { freeifaddrs(all); };
  std::vector<HostAddress> found;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if ((i->ifa_flags & IFF_UP) == 0) continue;
    if (const auto text = TextOf(i->ifa_addr)) found.push_back({*text, i->ifa_name});
  }
  return found;
}

absl::StatusOr<HostAddress> FindOwnAddress(const std::string& address) {
  const std::vector<HostAddress> own = OwnAddresses();
  const std::string wanted = Canonical(address);
  const auto found = std::find_if(own.begin(), own.end(), [&](const HostAddress& host) {
    return !wanted.empty() && host.address == wanted;
  });
  if (found != own.end()) return *found;
  return absl::InvalidArgumentError(absl::StrCat(
      "--address ", address, ": must be an address of this machine, which has ", Listed(own)));
}

absl::StatusOr<HostAddress> AddressOfInterface(const std::string& interface, bool prefer_ipv6) {
  const std::vector<HostAddress> own = OwnAddresses();
  std::vector<HostAddress> its;
  std::copy_if(own.begin(), own.end(), std::back_inserter(its),
               [&](const HostAddress& host) { return host.interface == interface; });
  if (its.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--interface ", interface,
                     ": must be an interface of this machine that is up and has an address beyond "
                     "its link; there are ",
                     Listed(own)));
  }
  const auto preferred = std::find_if(its.begin(), its.end(), [&](const HostAddress& host) {
    return IsIpv6(host.address) == prefer_ipv6;
  });
  return preferred == its.end() ? its.front() : *preferred;
}

absl::StatusOr<HostAddress> AddressTowards(const std::string& peer) {
  if (absl::StartsWith(peer, "unix")) return HostAddress{};
  if (!absl::StartsWith(peer, "ipv4:") && !absl::StartsWith(peer, "ipv6:")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the service's address \"", peer, "\" is none of the internet"));
  }
  // gRPC writes brackets as in an URI.
  ESPALIER_ASSIGN_OR_RETURN(
      const HostPort service,
      ParseHostPort(absl::StrReplaceAll(peer.substr(std::strlen("ipv4:")),
                                        {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}})));
  ESPALIER_ASSIGN_OR_RETURN(const std::string address, LocalEnd(service));
  if (HostAddress{address, ""}.loopback()) return HostAddress{};
  return FindOwnAddress(address);
}

absl::StatusOr<HostAddress> ChooseHostAddress(const AgentOptions& options,
                                              const std::string& service_peer) {
  if (!options.host_address.empty()) return FindOwnAddress(options.host_address);
  if (!options.interface.empty()) {
    return AddressOfInterface(options.interface, absl::StartsWith(service_peer, "ipv6:"));
  }
  return AddressTowards(service_peer);
}

}  // namespace espalier
