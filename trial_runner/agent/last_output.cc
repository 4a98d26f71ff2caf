#include "trial_runner/agent/last_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/file_descriptor.h"
#include "base/protocol.h"
#include "trial_runner/agent/terminal_text.h"

namespace espalier {
namespace {

// As much of a log is looked through for the start of a traceback.
constexpr std::size_t kMostLookedThrough_bytes = 1 << 20;
// Where more than so many times the limit follows a traceback, the program has lived on.
constexpr std::size_t kLongestMessage = 4;
constexpr std::string_view kTracebackBegin = "Traceback (most recent call last)";
constexpr std::string_view kGroupBegin = "+ Exception Group ";
constexpr std::string_view kChained[] = {
    "\nDuring handling of the above exception, another exception occurred:\n\n",
    "\nThe above exception was the direct cause of the following exception:\n\n"};
constexpr std::string_view kLeftOut = "  [lines are left out here: the trial's log has them]\n";
constexpr std::string_view kLeftOutOfLine = " [...] ";

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

// After the line that `at` is on.
std::size_t NextLine(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size() - 1) + 1;
}

// Box drawing, of which programs make frames around tracebacks.
bool IsBoxed(std::string_view line) {
  return line.starts_with("\xe2\x94") || line.starts_with("\xe2\x95");
}

// Whether it is a line within a traceback, above its error.
bool IsOfFrame(std::string_view line) {
  return line.starts_with(' ') || line.starts_with('\t') || line.starts_with('\n') || IsBoxed(line);
}

// Places in a text.
struct Traceback {
  std::size_t begin = 0;
  std::size_t error = 0;    // of the line that names it
  std::size_t message = 0;  // what comes after that line: more of its message, other output
};

// Of the traceback whose heading is there: the heading need not begin its line, where a progress
// bar was left without an end.
Traceback TracebackAt(std::string_view text, std::size_t heading) {
  const std::size_t line = text.rfind('\n', heading) + 1;
  const std::string_view before = text.substr(line, heading - line);
  Traceback found{.begin = IsBoxed(before) ? line : heading};
  const bool in_group =
      before.starts_with("  ") &&
      (before.find_first_not_of(" |") == std::string_view::npos || before.ends_with(kGroupBegin));
  const std::size_t group = in_group ? text.rfind(kGroupBegin, heading) : std::string_view::npos;
  if (group != std::string_view::npos) found.begin = text.rfind('\n', group) + 1;
  found.error = NextLine(text, heading);
  while (found.error < text.size() && IsOfFrame(text.substr(found.error))) {
    found.error = NextLine(text, found.error);
  }
  found.message = found.error < text.size() ? NextLine(text, found.error) : found.error;
  return found;
}

std::optional<Traceback> LastTraceback(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t heading = text.substr(0, end).rfind(kTracebackBegin);
    if (heading == std::string_view::npos) break;
    const std::size_t next = NextLine(text, heading);
    if (next < text.size() && IsOfFrame(text.substr(next))) return TracebackAt(text, heading);
    end = heading;
  }
  return std::nullopt;
}

// The first one of the chain of exceptions of which `last` is the last one.
Traceback FirstOfChain(std::string_view text, const Traceback& last) {
  Traceback first = last;
  std::optional<Traceback> before = last;
  while (before) {
    first = *before;
    before.reset();
    for (const std::string_view link : kChained) {
      const std::string_view above = text.substr(0, first.begin);
      if (above.ends_with(link))
        before = LastTraceback(above.substr(0, above.size() - link.size()));
    }
  }
  return first;
}

// Lines of at most so many bytes: the middle of longer ones is left out.
std::string ClippedLines(std::string_view text, std::size_t longest) {
  std::string clipped;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = NextLine(text, at);
    const std::string_view line = text.substr(at, next - at);
    if (line.size() <= longest) {
      clipped.append(line);
    } else {
      std::size_t head = (longest - kLeftOutOfLine.size()) / 2;
      std::size_t tail = line.size() - head;
      while (head > 0 && IsContinuation(line[head])) --head;
      while (tail < line.size() && IsContinuation(line[tail])) ++tail;
      clipped.append(line.substr(0, head)).append(kLeftOutOfLine).append(line.substr(tail));
    }
    at = next;
  }
  return clipped;
}

// The end of a text, and that there was more.
std::string MarkedEnd(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  if (limit < kLeftOut.size()) return "";
  return std::string(kLeftOut) + LastLines(text, limit - kLeftOut.size());
}

// Both ends of a text, and that there was more between them.
std::string BothEnds(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  const std::string_view head = text.substr(0, text.substr(0, limit / 2).rfind('\n') + 1);
  return std::string(head) + MarkedEnd(text.substr(head.size()), limit - head.size());
}

// The same, with the line that names the error.
std::string ShortenedTraceback(std::string_view text, const Traceback& of, std::size_t limit) {
  const std::string_view error = text.substr(of.error, of.message - of.error);
  const std::string_view frames = text.substr(of.begin, of.error - of.begin);
  return BothEnds(frames, limit - std::min(limit, error.size())).append(error);
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

std::string LastLinesOfProgram(std::string_view printed, std::size_t limit) {
  const std::string valid = ValidUtf8(TerminalText(printed));
  if (valid.size() <= limit) return valid;
  const std::string clipped = ClippedLines(valid, limit / 8);
  const std::string_view text = clipped;
  const std::size_t cut = text.size() - std::min(text.size(), limit);
  const std::optional<Traceback> last = LastTraceback(text);
  if (!last || last->message + kLongestMessage * limit < text.size()) return LastLines(text, limit);
  const Traceback first = FirstOfChain(text, *last);
  if (first.begin >= cut) return LastLines(text, limit);
  std::string kept;
  if (first.begin != last->begin) {
    kept = ShortenedTraceback(text, first, limit / 4);
    kept += MarkedEnd(text.substr(first.message, last->begin - first.message), limit / 6);
  }
  const std::size_t room = limit - kept.size();
  const std::size_t traceback = std::min(room, last->message - last->begin);
  const std::string end =
      MarkedEnd(text.substr(last->message), std::max(room / 3, room - traceback));
  return kept + ShortenedTraceback(text, *last, room - end.size()) + end;
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
  return LastLinesOfProgram(FileTail(log_path, kMostLookedThrough_bytes), kMaxLastOutput_bytes);
}

}  // namespace espalier
