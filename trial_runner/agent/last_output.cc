#include "trial_runner/agent/last_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/file_descriptor.h"
#include "base/protocol.h"

namespace espalier {
namespace {

// As much of a log is looked through for the start of a traceback.
constexpr std::size_t kLongestTraceback_bytes = 64 << 10;
constexpr std::string_view kTracebackBegin = "Traceback (most recent call last):\n";
constexpr std::string_view kLeftOut = "  [lines are left out here: the trial's log has them]\n";

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

// The length of the valid sequence that begins here, 0 if there is none (RFC 3629: no overlong
// forms, no surrogates, nothing above U+10FFFF).
std::size_t SequenceLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  const std::string_view rest = text.substr(1, length - 1);
  return std::all_of(rest.begin(), rest.end(), IsContinuation) ? length : 0;
}

// Where the text's last traceback begins, npos if there is none.
std::size_t LastTraceback(std::string_view text) {
  const std::size_t begin = text.rfind(kTracebackBegin);
  const bool starts_line =
      begin == 0 || (begin != std::string_view::npos && text[begin - 1] == '\n');
  return starts_line ? begin : std::string_view::npos;
}

// Where the traceback ends that begins there: after its error, and what is indented below that.
std::size_t TracebackEnd(std::string_view text, std::size_t begin) {
  bool in_error = false;
  std::size_t at = begin + kTracebackBegin.size();
  while (at < text.size()) {
    const bool indented = text[at] == ' ' || text[at] == '\t' || text[at] == '\n';
    if (!indented && std::exchange(in_error, true)) break;
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return at;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    if (length == 0) {
      valid.push_back('?');
    } else {
      valid.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
}

std::string LastLines(std::string_view text, std::size_t limit) {
  if (text.size() > limit) {
    // One byte more than the limit shows whether the cut falls on the start of a line.
    text.remove_prefix(text.size() - limit - 1);
    const std::size_t newline = text.find('\n');
    if (newline != std::string_view::npos && newline + 1 < text.size()) {
      text.remove_prefix(newline + 1);
    } else {
      text.remove_prefix(1);
      while (!text.empty() && IsContinuation(text.front())) text.remove_prefix(1);
    }
  }
  return ValidUtf8(text);
}

std::string LastLinesOfProgram(std::string_view text, std::size_t limit) {
  const std::size_t begin = LastTraceback(text);
  const std::size_t cut = text.size() - std::min(text.size(), limit);
  if (begin >= cut || TracebackEnd(text, begin) <= cut) return LastLines(text, limit);
  std::string_view head = text.substr(begin, limit / 2);
  head = head.substr(0, head.rfind('\n') + 1);
  std::string kept = ValidUtf8(head);
  kept += kLeftOut;
  return kept + LastLines(text.substr(begin + head.size()), limit - kept.size());
}

std::string FileTail(const std::string& path, std::size_t most) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.open()) return "";
  const off_t size = std::max<off_t>(0, lseek(file.get(), 0, SEEK_END));
  std::string text(std::min(most, static_cast<std::size_t>(size)), '\0');
  const ssize_t got =
      pread(file.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

std::string LastOutput(const std::string& log_path) {
  return LastLinesOfProgram(FileTail(log_path, kLongestTraceback_bytes), kMaxLastOutput_bytes);
}

}  // namespace espalier
