#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace espalier {

// What a study file says of how trials are started. `json` is the key's value; errors begin with
// the file, which is `label`, and name the key.

// The value of "env".
absl::StatusOr<std::map<std::string, std::string>> ReadEnvironment(const std::string& label,
                                                                   const std::string& json);

// The value of "preload": modules, or nullopt for `false`.
absl::StatusOr<std::optional<std::vector<std::string>>> ReadPreload(const std::string& label,
                                                                    const std::string& json);

}  // namespace espalier
