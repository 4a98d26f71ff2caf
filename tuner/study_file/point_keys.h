#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

// What a person knows of the parameters: "points" to try first, and those that are "fixed". Whether
// the search space has them is seen when a study is validated.
absl::Status ReadPoints(const KeyValue& value, StudySpec& spec);
absl::Status ReadFixed(const KeyValue& value, StudySpec& spec);

search_spaces_json::Json PointsJson(const StudySpec& spec);
search_spaces_json::Json FixedJson(const StudySpec& spec);

}  // namespace espalier
