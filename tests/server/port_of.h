#pragma once

#include <string>

namespace espalier {

// Of an address, HOST:PORT.
inline int PortOf(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

}  // namespace espalier
