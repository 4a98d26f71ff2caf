#include "tuner/credentials/roles.h"

#include "absl/strings/str_cat.h"

namespace espalier {

std::string RoleName(Role role) {
  switch (role) {
    case Role::kNobody:
      return "nobody";
    case Role::kTrial:
      return "trial";
    case Role::kAgent:
      return "agent";
    case Role::kView:
      return "view";
    case Role::kSubmit:
      return "submit";
    case Role::kAdminister:
      return "administer";
  }
  return "nobody";
}

absl::StatusOr<Role> ParseRole(std::string_view text) {
  for (const Role role : {Role::kAdminister, Role::kSubmit, Role::kView, Role::kAgent}) {
    if (text == RoleName(role)) return role;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("role \"", std::string(text), "\": must be administer, submit, view or agent"));
}

bool Allows(Role role, Role needed) {
  if (needed == Role::kNobody || role == Role::kAdminister || role == needed) return true;
  return role == Role::kSubmit && needed == Role::kView;
}

}  // namespace espalier
