#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

// The key "constraints": what the best trial has to keep. Whether the study can have any is seen
// when it is validated.
absl::Status ReadConstraints(const KeyValue& value, StudySpec& spec);
// Null, which is not written, where there are none.
search_spaces_json::Json ConstraintsJson(const StudySpec& spec);

inline constexpr const char* kConstraintsMeaning =
    R"(`["latency_ms <= 20", "accuracy >= 0.9"]`: bounds on figures that trials report beside )"
    "their value, each `<=` or `>=`. A trial whose newest figures break one is never the best, nor "
    "on the front, and samplers and pruners heed it, see "
    "[constraints](../../docs/objectives.md#constraints)";

}  // namespace espalier
