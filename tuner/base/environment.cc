#include "tuner/base/environment.h"

#include <cstdlib>

namespace espalier {

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace espalier
