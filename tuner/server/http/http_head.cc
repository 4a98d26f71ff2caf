#include "tuner/server/http/http_head.h"

#include <algorithm>

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

}  // namespace

HttpHead ReadHttpHead(std::string_view text) {
  constexpr std::string_view kAuthorization = "authorization:";
  std::string_view line = TakeUntil("\r\n", text);
  HttpHead head;
  head.method = TakeUntil(" ", line);
  head.target = TakeUntil(" ", line);
  while (!text.empty()) {
    line = TakeUntil("\r\n", text);
    if (line.empty()) break;
    if (!absl::StartsWithIgnoreCase(
            absl::string_view(line.data(), line.size()),
            absl::string_view(kAuthorization.data(), kAuthorization.size()))) {
      continue;
    }
    line.remove_prefix(kAuthorization.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    head.authorization = line.substr(0, line.find_last_not_of(" \t") + 1);
  }
  return head;
}

}  // namespace espalier
