#pragma once

#include <string>

#include "base/host_port.h"

namespace espalier {

// Of an address that a service tells of itself.
inline int PortOf(const std::string& address) { return ParseHostPort(address)->port; }

}  // namespace espalier
