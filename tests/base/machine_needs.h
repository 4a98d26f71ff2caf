#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace espalier {

// A case that needs what not every machine allows asks for it first, where the rest of its program
// does without it:
//
//   if (NotTestedHere(NoIpv6())) return;
//
// What whole programs need is in the suite's table instead: see tests/suite/machine.py.

// Whether something is in the way: that is said, and is a failure where all has to run
// (ESPALIER_REQUIRE=all).
inline bool NotTestedHere(const std::string& in_the_way) {
  if (in_the_way.empty()) return false;
  const char* require = std::getenv("ESPALIER_REQUIRE");
  if (require != nullptr && std::string_view(require) == "all") {
    ADD_FAILURE() << "ESPALIER_REQUIRE=all, and this is not tested: " << in_the_way;
  } else {
    std::cerr << "not tested: " << in_the_way << "\n";
  }
  return true;
}

// Why no socket listens on ::1; empty: one does.
inline std::string NoIpv6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  std::string why;
  if (socket < 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    why = std::string("no socket listens on ::1: ") + std::strerror(errno);
  }
  if (socket >= 0) close(socket);
  return why;
}

// Why a child of this process cannot become another user; empty: it can.
inline std::string NoOtherUser() {
  constexpr uid_t kAnotherUser = 65534;
  if (geteuid() != 0) return "user " + std::to_string(geteuid()) + " cannot become another one";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(kAnotherUser) != 0 || setuid(kAnotherUser) != 0) _exit(errno);
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status == 0) return "";
  return std::string("root cannot become another user: ") + std::strerror(WEXITSTATUS(status));
}

}  // namespace espalier
