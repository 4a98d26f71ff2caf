#include "trial_runner/collectives/rendezvous/network_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/cleanup/cleanup.h"

namespace espalier {
namespace {

bool Has(const sockaddr* has, const std::string& address) {
  if (has == nullptr) return false;
  if (has->sa_family == AF_INET) {
    in_addr wanted{};
    return inet_pton(AF_INET, address.c_str(), &wanted) == 1 &&
           std::memcmp(&wanted, &reinterpret_cast<const sockaddr_in*>(has)->sin_addr,
                       sizeof wanted) == 0;
  }
  if (has->sa_family != AF_INET6) return false;
  in6_addr wanted{};
  return inet_pton(AF_INET6, address.c_str(), &wanted) == 1 &&
         std::memcmp(&wanted, &reinterpret_cast<const sockaddr_in6*>(has)->sin6_addr,
                     sizeof wanted) == 0;
}

}  // namespace

std::string InterfaceOf(const std::string& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const absl::Cleanup free_all = [all] { freeifaddrs(all); };
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (Has(i->ifa_addr, address)) return i->ifa_name;
  }
  return "";
}

}  // namespace espalier
