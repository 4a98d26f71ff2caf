#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// A study's name as a folder's: '/', '%' and a leading dot are written as %XX. Pure.
std::string FolderName(const std::string& study);
// And back.
std::string StudyOfFolder(std::string_view folder);

// <directory>/<study>/trial-<number>. Pure.
std::string TrialFolder(const std::string& directory, const std::string& study,
                        std::int64_t number);
// "trial-7" -> 7; nullopt: it is no trial's folder. Pure.
std::optional<std::int64_t> TrialNumberOf(std::string_view folder);

}  // namespace espalier
