#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

inline constexpr std::size_t kMaxMetricPath_bytes = 1024;
inline constexpr std::size_t kMaxMetricKey_bytes = 256;  // of a line of JSON, or a scalar's tag

// The key "metric": its name and direction, and where its values are found if programs do not
// report them.
absl::Status ReadMetric(const KeyValue& value, StudySpec& spec);
// The pattern of "from_output" is one, and has a group for each figure that the study needs.
absl::Status CheckPatterns(const OpenStudyFile& file, const StudySpec& spec);
search_spaces_json::Json MetricJson(const StudySpec& spec);

}  // namespace espalier
