#pragma once

#include <string>
#include <string_view>

#include "tuner/base/status.h"
#include "tuner/core/state/study.h"

namespace espalier {

// Study files: JSON to StudySpec, with every error naming the file, the key, the value and what
// would be right. README.md of this folder lists the keys.
//
// `label` names the text in messages (usually the file's path); `directory` is the absolute
// folder that relative paths in it are taken from (search_space may name a file there).
// spec.json is the same study with the search space inline: reading that again gives an equal
// spec, which is what storage keeps.
absl::StatusOr<StudySpec> ParseStudy(std::string_view json, const std::string& label,
                                     const std::string& directory);

absl::StatusOr<StudySpec> ReadStudyFile(const std::string& path);

// Whether the study's command can be started: found in its directory or PATH, and executable.
absl::Status CheckCommand(const StudySpec& spec);

// Whether the files that the study says its trials need are there; if not, which and what to do.
absl::Status CheckNeeds(const StudySpec& spec);

}  // namespace espalier
