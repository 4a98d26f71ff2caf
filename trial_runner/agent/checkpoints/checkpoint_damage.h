#pragma once

#include <functional>
#include <string>

#include "tuner/base/status.h"

namespace espalier {

// Behind the name of a checkpoint that was set aside.
inline constexpr char kDamagedSuffix[] = ".damaged";

// Whether the file `name` in the folder ends with a trial's seal (checkpoint_seal.h).
bool HasChecksum(const std::string& folder, const std::string& name);

// Reads all of the file `name` in the folder, if it ends with a seal.
// DATA_LOSS: it is damaged. Other errors stand for themselves; what has no seal, or is not there,
// is nobody's to judge.
absl::Status CheckForDamage(const std::string& folder, const std::string& name,
                            const std::function<bool()>& go_on);

// CheckForDamage; a damaged file is renamed to NAME.damaged, in place of an earlier one of the
// folder, and the reason says so.
absl::Status SetAsideIfDamaged(const std::string& folder, const std::string& name,
                               const std::function<bool()>& go_on);

void RemoveDamaged(const std::string& folder);

}  // namespace espalier
