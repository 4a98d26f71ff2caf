#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search_spaces/search_space.h"
#include "search_spaces/space_flaws.h"

namespace espalier {

// Whole search spaces in Optuna's format: a JSON object of distributions by parameter, as
// optuna.distributions.distribution_to_json writes each:
// {"lr": {"name": "FloatDistribution", "attributes": {"step": null, "low": ..., "log": true}}}.

// Whether the text is such an object rather than a space in NNI's format. False for what is
// neither.
bool LooksLikeOptuna(std::string_view document);

struct OptunaReading {
  SearchSpaceReading reading;
  std::vector<std::string> notes;  // what is nearly but not quite the same, a sentence each
};

// Distributions that have no equivalent here are flaws: an integer on a logarithmic scale, choices
// that are neither numbers, texts nor booleans.
OptunaReading ReadOptunaSpace(std::string_view document);

struct OptunaText {
  std::string json;                // empty where there are flaws
  std::vector<std::string> flaws;  // one per parameter that Optuna's format cannot express
  std::vector<std::string> notes;
};

// Flaws: nested choices and what depends on them, normal kinds, steps on a logarithmic scale, and
// bounds that are no multiples of q.
OptunaText ToOptuna(const SearchSpace& space);

}  // namespace espalier
