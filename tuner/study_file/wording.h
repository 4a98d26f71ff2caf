#pragma once

// Private to this folder: it shows the JSON library.

#include <string_view>

#include "tuner/study_file/key_value.h"

namespace espalier {

// Keeps the text of a study that has just been read from the file, as WriteStudy gives it. Fails
// where that text would be read as another study: text that is not UTF-8 has no place in JSON.
absl::Status KeepWording(const OpenStudyFile& file, StudySpec& spec);

// Whether JSON can say it, which has no other texts than UTF-8.
bool Writable(const search_spaces_json::Json& json);

// Whether a text with the search space inline is short enough for ParseStudy.
absl::Status CheckTextSize(std::string_view text, std::string_view label);

// A study with the fields that the kept text gives, and the others as they are by default.
StudySpec FieldsOf(std::string_view text, const search_spaces_json::Json& json);

}  // namespace espalier
