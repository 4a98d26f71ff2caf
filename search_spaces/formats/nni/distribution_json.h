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

// One parameter's {"_type": ..., "_value": ...}. Of a nested choice the names of its options are
// read; what else they hold is the reader's. All flaws of the shape are found; the values' own
// (FlawOf) are not looked for. No distribution without flaws of shape.
struct DistributionReading {
  std::optional<Distribution> distribution;
  std::vector<LocalFlaw> flaws;
};
DistributionReading ReadDistribution(const Json& spec);

// The "_value" of a distribution; of a nested choice the names of its options.
Json ValuesOf(const Distribution& distribution);

}  // namespace espalier::search_spaces_json
