#include "tuner/cli/verb.h"

#include <cstdio>

namespace espalier {

ExitCode Fail(const std::string& verb, ExitCode code, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "tuner %s: %s\n", verb.c_str(), message.c_str());
  return code;
}

ExitCode Fail(const std::string& verb, const absl::Status& status) {
  return Fail(verb, ExitCodeOf(status), std::string(status.message()));
}

}  // namespace espalier
