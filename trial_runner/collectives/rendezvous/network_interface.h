#pragma once

#include <string>

namespace espalier {

// The name of this machine's network interface that has the address, which is numeric; empty: none
// has it.
std::string InterfaceOf(const std::string& address);

}  // namespace espalier
