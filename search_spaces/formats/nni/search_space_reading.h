#pragma once

#include <string>
#include <string_view>

#include "search_spaces/space_flaws.h"

namespace espalier {

// Reads NNI's format, in full: everything that is wrong is found. `pointer` is where the space is
// in its document (a study file's "/search_space").
SearchSpaceReading ReadSearchSpace(std::string_view document, const std::string& pointer = "");

}  // namespace espalier
