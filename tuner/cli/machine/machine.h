#pragma once

#include <cstdint>
#include <string>

namespace espalier {

// What spares may use of it unless told otherwise.
std::int64_t SpareMemoryBytes();

constexpr int kMaxNodeSlots = 4096;

// Absolute path of this executable.
std::string OwnExecutable();

}  // namespace espalier
