#include "tuner/cli/views/new_output.h"

#include <algorithm>
#include <vector>

namespace espalier {
namespace {

constexpr std::string_view kNode = "==> node ";
constexpr std::string_view kReplica = "==> replica ";
constexpr std::string_view kHeadingEnd = " <==";
// As much of the end of what was printed tells where it stands now.
constexpr std::size_t kMark_bytes = 1024;

// What was printed in one place.
struct Part {
  std::string node;      // its heading; empty: there is one node
  std::string headings;  // of node and replica; empty: there is one place
  std::string_view text;
};

std::vector<Part> PartsOf(std::string_view text) {
  std::vector<Part> parts;
  Part part;
  std::size_t begin = 0;
  const auto end_part = [&](std::size_t end) {
    part.text = text.substr(begin, end - begin);
    if (!part.text.empty()) parts.push_back(part);
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view line = text.substr(at, next - at);
    if (line.ends_with('\n')) line.remove_suffix(1);
    const bool of_node = line.starts_with(kNode);
    if (line.ends_with(kHeadingEnd) && (of_node || line.starts_with(kReplica))) {
      end_part(at);
      const std::string heading = std::string(line) + "\n";
      if (of_node) part.node = heading;
      part.headings = of_node ? heading : part.node + heading;
      begin = next;
    }
    at = next;
  }
  end_part(text.size());
  return parts;
}

// What comes after `before` in a text that may have lost what is at its beginning, or within.
std::string_view After(std::string_view before, std::string_view now) {
  if (now.starts_with(before)) return now.substr(before.size());
  const std::string_view mark = before.substr(before.size() - std::min(before.size(), kMark_bytes));
  const std::size_t at = now.rfind(mark);
  return at == std::string_view::npos ? now : now.substr(at + mark.size());
}

}  // namespace

std::string NewOutput(std::string_view before, std::string_view now) {
  std::vector<Part> had = PartsOf(before);
  std::string added;
  std::string last = had.empty() ? "" : had.back().headings;
  for (const Part& part : PartsOf(now)) {
    std::string_view rest = part.text;
    const auto same = std::find_if(had.begin(), had.end(), [&](const Part& each) {
      // The only replica has no heading until there are others.
      return each.headings == part.headings ||
             (part.headings.starts_with(each.headings) && part.text.starts_with(each.text));
    });
    if (same != had.end()) {
      rest = After(same->text, part.text);
      had.erase(same);
    }
    if (rest.empty()) continue;
    if (part.headings != last) added += part.headings;
    last = part.headings;
    added += rest;
  }
  return added;
}

}  // namespace espalier
