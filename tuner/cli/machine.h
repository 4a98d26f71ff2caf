#pragma once

#include <cstdint>
#include <string>

namespace espalier {

// GPUs that this process may use (CUDA_VISIBLE_DEVICES), else the CPU cores it may run on.
int DefaultSlots();

// Memory that this process may use: the machine's, or its control group's if that is less.
std::int64_t MemoryBytes();

// Absolute path of this executable.
std::string OwnExecutable();

std::string HostName();

}  // namespace espalier
