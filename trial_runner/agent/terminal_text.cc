#include "trial_runner/agent/terminal_text.h"

#include <algorithm>

namespace espalier {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\a';

// The length of the escape sequence that the text begins with.
std::size_t EscapeLength(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    // Parameters, and one character that says what is to be done with them.
    const auto end = std::find_if(text.begin() + 2, text.end(), [](char c) {
      return c < '\x20' || (c >= '\x40' && c != '\x7f');
    });
    const auto length = static_cast<std::size_t>(end - text.begin());
    const bool whole = end != text.end() && *end >= '\x40';
    return whole ? length + 1 : length;
  }
  if (text[1] == ']') {
    // A title or a link, up to a bell or the escape that ends it; never over a line's end.
    const std::size_t end = std::min(text.find_first_of("\a\n\x1b", 2), text.size());
    if (end == text.size() || text[end] == '\n') return end;
    return text[end] == kBell ? end + 1 : std::min(end + 2, text.size());
  }
  if (text[1] < '\x20' || text[1] > '\x7e') return 1;
  // Some have a character between, such as the choice of a character set.
  const bool three = text[1] <= '\x2f';
  return std::min<std::size_t>(three ? 3 : 2, text.size());
}

bool IsControl(char c) { return (c >= '\0' && c < '\x20' && c != '\t') || c == '\x7f'; }

}  // namespace

std::string TerminalText(std::string_view printed) {
  std::string shown;
  shown.reserve(printed.size());
  std::size_t line = 0;       // where it begins in `shown`
  bool written_over = false;  // by what comes next, if something does on this line
  while (!printed.empty()) {
    const char c = printed.front();
    if (c == kEscape) {
      printed.remove_prefix(EscapeLength(printed));
      continue;
    }
    printed.remove_prefix(1);
    if (c == '\n') {
      shown.push_back(c);
      line = shown.size();
      written_over = false;
    } else if (c == '\r') {
      written_over = true;
    } else if (!IsControl(c)) {
      if (written_over) shown.resize(line);
      written_over = false;
      shown.push_back(c);
    }
  }
  return shown;
}

}  // namespace espalier
