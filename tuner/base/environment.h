#pragma once

#include <string>

namespace espalier {

// The value of an environment variable; empty where it is unset. Not while another thread sets one.
std::string EnvironmentVariable(const char* name);

}  // namespace espalier
