#pragma once

// Private to this folder.

#include <optional>
#include <string>
#include <vector>

#include "search_spaces/distribution.h"
#include "search_spaces/json_text.h"

namespace espalier::search_spaces_json {

// Something wrong within one value, at a pointer that begins there.
struct LocalFlaw {
  std::string pointer;
  std::string what;
};

// One parameter's {"_type": ..., "_value": ...}. Of a nested choice only the names of its options
// are read; what else they hold is left to the reader. All flaws of the shape are found; those of
// the values (FlawOf) are not looked for. There is a distribution only where the shape has no
// flaws.
struct DistributionReading {
  std::optional<Distribution> distribution;
  std::vector<LocalFlaw> flaws;
};
DistributionReading ReadDistribution(const Json& spec);

// The "_value" of a distribution; for a nested choice, the names of its options.
Json ValuesOf(const Distribution& distribution);

}  // namespace espalier::search_spaces_json
