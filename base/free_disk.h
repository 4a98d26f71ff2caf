#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace espalier {

// What this user may still write on the disk of a folder; nullopt: errno says why it is not known.
std::optional<std::int64_t> FreeDiskBytes(const std::string& folder);

}  // namespace espalier
