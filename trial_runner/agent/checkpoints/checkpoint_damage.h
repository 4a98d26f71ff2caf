#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace espalier {

// The ending of the name of a checkpoint that was set aside.
inline constexpr char kDamagedSuffix[] = ".damaged";

// Whether the file `name` in the folder ends with a trial's seal (checkpoint_seal.h).
bool HasChecksum(const std::string& folder, const std::string& name);

// Reads all of the file `name` in the folder, if it ends with a seal.
// DATA_LOSS: it is damaged. Other errors speak for themselves. A file without a seal, or one that
// is not there, is not judged.
absl::Status CheckForDamage(const std::string& folder, const std::string& name,
                            const std::function<bool()>& go_on);

// As CheckForDamage, but renames a damaged file to NAME.damaged, which replaces an earlier one in
// the folder, and the error says so.
absl::Status SetAsideIfDamaged(const std::string& folder, const std::string& name,
                               const std::function<bool()>& go_on);

void RemoveDamaged(const std::string& folder);

}  // namespace espalier
