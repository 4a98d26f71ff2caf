#pragma once

#include <string>

#include "base/host_port.h"

namespace espalier {

// Where a socket of the internet is bound on this machine, as numbers. An empty host: it is none.
HostPort LocalEnd(int socket);

// Whether an address of numbers is of loopback: 127.0.0.0/8 or ::1.
bool IsLoopback(const std::string& address);

}  // namespace espalier
