#pragma once

#include <string>

namespace espalier {

// GPUs that this process may use (CUDA_VISIBLE_DEVICES), else the CPU cores it may run on.
int DefaultSlots();

// Absolute path of this executable.
std::string OwnExecutable();

std::string HostName();

}  // namespace espalier
