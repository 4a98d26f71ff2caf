#pragma once

#include <string>
#include <string_view>

#include "tuner/base/status.h"

namespace espalier {

// What somebody may do. Whoever administers may do all; who submits may view; agents carry trials
// and do nothing else; a trial speaks for itself alone.
enum class Role { kNobody, kTrial, kAgent, kView, kSubmit, kAdminister };

// As tokens are made: "administer", "submit", "view", "agent".
std::string RoleName(Role role);
// Those four. The error names them.
absl::StatusOr<Role> ParseRole(std::string_view text);

// Whether who has `role` may do what needs `needed`. What needs kNobody all may.
bool Allows(Role role, Role needed);

}  // namespace espalier
