#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

// The key "population". Whether the study can be one is seen when it is validated.
absl::Status ReadPopulation(const KeyValue& value, StudySpec& spec);
// Null, which is not written, where it is none.
search_spaces_json::Json PopulationJson(const StudySpec& spec);

inline constexpr const char* kPopulationMeaning =
    R"(`{"interval": 5, "parameters": ["lr"]}`: the trials train as a population. Each `interval` )"
    "steps that a trial reports it is compared with the others, and in place of one of the worst a "
    "clone of one of the best goes on, with `parameters` changed. With `quantile` (0.25), "
    "`explore` (`perturb`, or `pb2`: by a bandit), `resample_probability` (0.25) and `factors` "
    "([0.8, 1.2]), see "
    "[populations](../../docs/population.md)";

}  // namespace espalier
