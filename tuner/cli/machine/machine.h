#pragma once

#include <cstdint>
#include <string>

namespace espalier {

// The cores that this process may run on.
int CpuCores();

// Memory that this process may use: the machine's, or its control group's if that is less.
std::int64_t MemoryBytes();

// What spares may use of it unless told otherwise.
std::int64_t SpareMemoryBytes();

constexpr int kMaxNodeSlots = 4096;

// Absolute path of this executable.
std::string OwnExecutable();

std::string HostName();

}  // namespace espalier
