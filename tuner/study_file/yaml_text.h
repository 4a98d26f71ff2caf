#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace espalier {

// Whether a file is YAML, by its name: it ends in .yaml or .yml.
bool IsYamlFile(std::string_view path);

// The JSON of one YAML document, with each value in the line in which it stands there, so that
// what is said of the one is true of the other. Scalars are read as YAML 1.2 does (core schema):
// `1e-3` is a number, `no` and `on` are texts. Refused, with the line, is what JSON cannot say
// (anchors, aliases, tags, infinities) and what could be meant in two ways: numbers that begin with
// 0 or 0x, a key that is given twice, {x} without quotes. Errors begin with `label`.
absl::StatusOr<std::string> JsonOfYaml(std::string_view yaml, const std::string& label);

// The same, and whether it is an object of Kubernetes', in YAML or JSON: it has an apiVersion, as
// no study has. Also where its JSON is an error, since such objects may have more of YAML; but not
// where the document is no YAML.
struct YamlDocument {
  absl::StatusOr<std::string> json;
  bool has_api_version = false;
};
YamlDocument ReadYaml(std::string_view yaml, const std::string& label);

// Whether the text may be given to the library: it has no control characters, which YAML does not
// allow (1.2, 5.1) and of which the library takes a zero byte for an end at which one more document
// begins, and never comes to the last.
absl::Status CheckYamlText(std::string_view yaml, const std::string& label);

}  // namespace espalier
