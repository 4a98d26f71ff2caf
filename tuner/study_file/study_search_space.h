#pragma once

#include <string>
#include <string_view>

#include "search_spaces/search_space.h"
#include "tuner/study_file/study_file.h"

namespace espalier {

// A study's search space. Errors begin with the file that the space is in, and name JSON pointer
// and line there. `label` is the study file's.

// Reads it from a file that the study names, if that is allowed; a relative path is taken from
// `folder`.
absl::StatusOr<SearchSpace> SearchSpaceOfFile(const std::string& label, const std::string& folder,
                                              const std::string& name, SpaceFiles files);

// Reads it from the study's own text, under "search_space".
absl::StatusOr<SearchSpace> SearchSpaceWithin(const std::string& label, std::string_view text);

}  // namespace espalier
