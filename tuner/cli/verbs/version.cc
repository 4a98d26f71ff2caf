// `tuner version`: prints the version.

#include <cstdio>

#include "base/protocol.h"
#include "tuner/cli/verb.h"

namespace espalier {

VerbAction AddVersion(CliCommand&) {
  return [] {
    std::printf("tuner %s\n", Release().c_str());
    return ExitCode::kOk;
  };
}

}  // namespace espalier
