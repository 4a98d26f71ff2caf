#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

// What a person knows of the parameters: "points" to try first, those that are "fixed", and the
// "prior", where good values are expected. Whether the search space has them is seen when a study
// is validated.
absl::Status ReadPoints(const KeyValue& value, StudySpec& spec);
absl::Status ReadFixed(const KeyValue& value, StudySpec& spec);
absl::Status ReadPrior(const KeyValue& value, StudySpec& spec);

inline constexpr const char* kPointsMeaning =
    R"(`[{"lr": 0.001, "optimizer": "adam"}, ...]`: parameters of the first trials, in this )"
    "order, before the sampler is asked; what one does not name is drawn. Clients of a study with "
    "`ask_and_tell` get them as trials that wait for whoever asks next";
inline constexpr const char* kFixedMeaning =
    R"(`{"lr": 0.001}`: parameters that all trials have, while the sampler searches the others. A )"
    "choice may be fixed with the parameters of its option";
inline constexpr const char* kPriorMeaning =
    R"(`{"lr": 0.001, "layers": {"value": 3, "confidence": "high"}}`: where good values are )"
    "expected, for `tpe`, `gp` and `cmaes`; a confidence is `low`, `medium` (the default), `high` "
    "or a number, see [samplers](../../docs/samplers.md#a-prior)";

search_spaces_json::Json PointsJson(const StudySpec& spec);
search_spaces_json::Json FixedJson(const StudySpec& spec);
search_spaces_json::Json PriorJson(const StudySpec& spec);

}  // namespace espalier
