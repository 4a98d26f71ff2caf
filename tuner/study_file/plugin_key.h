#pragma once

// Private to this folder: it shows the JSON library.

#include "tuner/study_file/key_value.h"

namespace espalier {

// A sampler, pruner or policy: a name, or an object with its name and options. What the options
// take is its table's to say (Validate).
absl::Status ReadPlugin(const KeyValue& value, PluginSpec& plugin);

search_spaces_json::Json JsonOf(const PluginSpec& plugin);

// Whole numbers as such.
search_spaces_json::Json JsonOf(double number);

}  // namespace espalier
