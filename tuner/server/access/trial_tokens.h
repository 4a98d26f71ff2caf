#pragma once

#include <cstdint>
#include <string>

#include "tuner/api/tuner.h"
#include "tuner/server/access/access_control.h"

namespace espalier {

// OK unless `token` is a replica's: then `trial` has to be that replica's own, and to live. Waits
// for the owner of the core only for such a token.
absl::Status CheckTrialToken(const AccessControl& access, const std::string& token,
                             std::int64_t trial, Tuner& tuner);

}  // namespace espalier
