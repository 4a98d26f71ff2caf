#include "search_spaces/space_flaws.h"

#include "absl/strings/str_cat.h"

namespace espalier {

std::string SpaceFlaw::Text() const {
  if (line == 0) return message;
  return absl::StrCat("line ", line, pointer.empty() ? "" : ", " + pointer, ": ", message);
}

absl::Status SearchSpaceReading::status() const {
  if (flaws.empty()) return absl::OkStatus();
  const SpaceFlaw& first = flaws.front();
  std::string text = first.message;
  if (first.line > 0) {
    absl::StrAppend(&text, " (", first.pointer.empty() ? "" : first.pointer + ", ", "line ",
                    first.line, ")");
  }
  if (flaws.size() > 1) {
    absl::StrAppend(&text, "; and ", flaws.size() - 1, " more, which `tuner space check` shows");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace espalier
