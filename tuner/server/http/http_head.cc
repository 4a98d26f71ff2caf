#include "tuner/server/http/http_head.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace espalier {

namespace {

// Takes what stands before `mark` off `text`, and the mark.
std::string_view TakeUntil(std::string_view mark, std::string_view& text) {
  const std::size_t at = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + mark.size(), text.size()));
  return taken;
}

// Of the characters of a header's name.
bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// Whether a header of this name says where the request ends.
bool SaysWhereItEnds(std::string_view name) {
  const absl::string_view text(name.data(), name.size());
  return absl::EqualsIgnoreCase(text, "Content-Length") ||
         absl::EqualsIgnoreCase(text, "Transfer-Encoding");
}

// What follows `name`, in any case, in the line, without blanks around it; nullopt: it is of
// another.
std::optional<std::string_view> ValueOf(std::string_view name, std::string_view line) {
  if (!absl::StartsWithIgnoreCase(absl::string_view(line.data(), line.size()),
                                  absl::string_view(name.data(), name.size()))) {
    return std::nullopt;
  }
  line.remove_prefix(name.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.substr(0, line.find_last_not_of(" \t") + 1);
}

}  // namespace

bool HasPlainHeaders(std::string_view text) {
  for (bool request_line = true; !text.empty(); request_line = false) {
    const std::string_view line = TakeUntil("\r\n", text);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) return false;
    if (request_line) continue;
    const std::string_view name = line.substr(0, line.find(':'));
    if (name.empty() || name.size() == line.size()) return false;
    if (!std::ranges::all_of(name, IsNameCharacter)) return false;
    const bool blank = line.find_first_not_of(" \t", name.size() + 1) == std::string_view::npos;
    if (blank && SaysWhereItEnds(name)) return false;
  }
  return true;
}

HttpHead ReadHttpHead(std::string_view text) {
  std::string_view line = TakeUntil("\r\n", text);
  HttpHead head;
  head.method = TakeUntil(" ", line);
  head.target = TakeUntil(" ", line);
  while (!text.empty()) {
    line = TakeUntil("\r\n", text);
    if (line.empty()) break;
    if (const auto value = ValueOf("authorization:", line)) head.authorization = *value;
    if (const auto value = ValueOf("cookie:", line)) head.cookie = *value;
  }
  return head;
}

}  // namespace espalier
