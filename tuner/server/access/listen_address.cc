#include "tuner/server/access/listen_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/local_end.h"
#include "base/machine_address.h"

namespace espalier {

bool ListenAddress::loopback() const { return host == "localhost" || IsLoopback(host); }

bool IsAddressOrLocalhost(std::string_view host) {
  if (host.starts_with('[')) return true;
  const std::string_view name = host.substr(0, host.find(':'));
  return name == "localhost" || name.find_first_not_of("0123456789.") == std::string_view::npos;
}

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& text) {
  ESPALIER_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(text));
  return ListenAddress{std::move(address)};
}

std::string NameFromElsewhere(const std::string& address) {
  const absl::StatusOr<ListenAddress> parsed = ParseListenAddress(address);
  if (!parsed.ok() || (parsed->host != "0.0.0.0" && parsed->host != "::")) return address;
  return absl::StrCat(NameForOtherMachines(), ":", parsed->port);
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
