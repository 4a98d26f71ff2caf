#include "base/json/json_depth.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace espalier {

bool NestsDeeper(std::string_view json, int max_depth) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

bool EndsEarly(std::string_view json) { return json.find('\0') != std::string_view::npos; }

absl::Status CheckJsonDepth(std::string_view json) {
  if (!NestsDeeper(json)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("values nest deeper than ", kMaxJsonDepth, " levels"));
}

}  // namespace espalier
