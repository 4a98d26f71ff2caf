#pragma once

#include <span>
#include <string_view>

#include "tuner/credentials/roles.h"

namespace espalier {

// What one call of the service needs. This is the only place that says so; what is not in the table
// is refused.
struct Permission {
  // "/espalier.v1.Tuner/Agent", "GET /metrics", or for optuna-dashboard's pages,
  // whose routes say by their method whether they change anything, "dashboard GET".
  std::string_view call;
  Role needed;
  bool trial = false;  // also a trial, for itself
};

std::span<const Permission> Permissions();

// Null: no such call.
const Permission* FindPermission(std::string_view call);

}  // namespace espalier
