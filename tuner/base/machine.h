#pragma once

#include <string>

namespace espalier {

// The same for all processes of this machine until it starts again; empty where that cannot be
// told. Containers of one machine share it, though not their files.
std::string MachineId();

}  // namespace espalier
