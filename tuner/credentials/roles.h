#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

// What the holder of a token may do. kAdminister allows everything; kSubmit includes kView; agents
// carry trials and do nothing else; a trial speaks only for itself.
enum class Role { kNobody, kTrial, kAgent, kView, kSubmit, kAdminister };

// As tokens are made: "administer", "submit", "view", "agent".
std::string RoleName(Role role);
// Reads these four names. The error lists them.
absl::StatusOr<Role> ParseRole(std::string_view text);

// Whether the holder of `role` may make calls that need `needed`. Calls that need kNobody are open
// to all.
bool Allows(Role role, Role needed);

}  // namespace espalier
