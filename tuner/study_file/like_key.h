#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

// The study that is "like" this one: its name, or what was taken of it, with the trials
// (StudySpec::like).
absl::Status ReadLike(const KeyValue& value, StudySpec& spec);
search_spaces_json::Json LikeJson(const StudySpec& spec);

inline constexpr const char* kLikeMeaning =
    "the name of another study of the service, whose trials `tpe`, `gp`, `cmaes`, `nsga2`, `nsga3` "
    "or `auto` learns from, too; once the study is created, an object with the trials that were "
    "taken, see "
    "[samplers](../../docs/samplers.md#another-study)";

}  // namespace espalier
