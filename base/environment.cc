#include "base/environment.h"

#include <cstdlib>

#include "absl/strings/ascii.h"

namespace espalier {

std::string EnvironmentVariable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string ParameterVariable(const std::string& name) {
  std::string variable = "ESPALIER_PARAM_";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    variable.push_back(absl::ascii_isalnum(byte) ? absl::ascii_toupper(byte) : '_');
  }
  return variable;
}

}  // namespace espalier
