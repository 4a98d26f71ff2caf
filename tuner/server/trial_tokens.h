#pragma once

#include <cstdint>
#include <string>

#include "tuner/api/tuner.h"
#include "tuner/server/access_control.h"

namespace espalier {

// OK unless `token` is that of a replica: then `trial` has to be its own, and to live. Waits for
// the owner of the core only where it is.
absl::Status CheckTrialToken(const AccessControl& access, const std::string& token,
                             std::int64_t trial, Tuner& tuner);

}  // namespace espalier
