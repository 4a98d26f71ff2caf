#include "tuner/cli/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tuner.pb.h"
#include "tuner/cli/views/plain_log.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

constexpr double kStatusEvery_s = 10;
constexpr const char* kShowCursor = "\x1b[?25h";

struct TerminalSize {
  std::size_t width = 100;
  std::size_t height = 30;
};

std::optional<TerminalSize> SizeOfTerminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row};
}

bool WantsColor() {
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org: any value but none
  return no_color == nullptr || *no_color == '\0';
}

const char* Escape(LineStyle style) {
  switch (style) {
    case LineStyle::kPlain:
      return "";
    case LineStyle::kTitle:
      return "\x1b[1m";
    case LineStyle::kBest:
      return "\x1b[1;36m";
    case LineStyle::kRunning:
      return "\x1b[32m";
    case LineStyle::kDim:
      return "\x1b[2m";
    case LineStyle::kBad:
      return "\x1b[31m";
  }
  return "";
}

class LiveDisplay : public StudyDisplay {
 public:
  LiveDisplay() : color_(WantsColor()) { Write("\x1b[?25l"); }
  ~LiveDisplay() override { Finish(); }

  void StartAfter(const v1::StudyDetails& details) override { last_ = details; }

  void Show(const v1::StudyDetails& details) override {
    const TerminalSize size = SizeOfTerminal().value_or(TerminalSize());
    // The last column stays free: a full line would make some terminals wrap.
    const std::vector<TableLine> lines = RenderTable(
        details, {.width = size.width - 1, .height = size.height - 1, .now = Seconds(Now())});
    std::string out = ToTableStart(size.width);
    for (const std::string& failure : FailureLines(last_, details)) {
      out += Cut(failure, size.width - 1) + "\x1b[K\n";
    }
    drawn_.clear();
    for (const TableLine& line : lines) {
      const bool styled = color_ && line.style != LineStyle::kPlain;
      out +=
          (styled ? Escape(line.style) : "") + line.text + (styled ? "\x1b[0m" : "") + "\x1b[K\n";
      drawn_.push_back(DisplayWidth(line.text));
    }
    // In one write, and clearing only what is left over: nothing flickers.
    Write(out + "\x1b[J");
    last_ = details;
  }

  void Say(const std::string& line) override {
    const TerminalSize size = SizeOfTerminal().value_or(TerminalSize());
    Write(ToTableStart(size.width) + "\x1b[J" + line + "\n");
    drawn_.clear();
  }

  void Finish() override {
    if (finished_) return;
    finished_ = true;
    Write(kShowCursor);
  }

 private:
  // The terminal may have become narrower since: then the lines drawn take more rows now.
  std::string ToTableStart(std::size_t width) const {
    std::size_t rows = 0;
    for (const std::size_t columns : drawn_) rows += columns == 0 ? 1 : 1 + (columns - 1) / width;
    return rows == 0 ? "\r" : "\r\x1b[" + std::to_string(rows) + "A";
  }

  static void Write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  bool color_;
  bool finished_ = false;
  v1::StudyDetails last_;
  std::vector<std::size_t> drawn_;  // widths of the table's lines on the screen
};

class PlainDisplay : public StudyDisplay {
 public:
  void StartAfter(const v1::StudyDetails& details) override { last_ = details; }
  void Show(const v1::StudyDetails& details) override {
    const std::vector<std::string> events = EventLines(last_, details);
    for (const std::string& line : events) std::puts(line.c_str());
    const Time now = Now();
    if (status_at_.us == 0) status_at_ = now;
    if (SecondsBetween(status_at_, now) >= kStatusEvery_s) {
      std::puts(StatusLine(details).c_str());
      status_at_ = now;
    }
    std::fflush(stdout);
    last_ = details;
  }
  void Say(const std::string& line) override {
    std::puts(line.c_str());
    std::fflush(stdout);
  }
  void Finish() override {}

 private:
  v1::StudyDetails last_;
  Time status_at_;
};

class QuietDisplay : public StudyDisplay {
 public:
  void StartAfter(const v1::StudyDetails&) override {}
  void Show(const v1::StudyDetails&) override {}
  void Say(const std::string&) override {}
  void Finish() override {}
};

}  // namespace

std::unique_ptr<StudyDisplay> MakeDisplay(bool quiet) {
  if (quiet) return std::make_unique<QuietDisplay>();
  if (isatty(STDOUT_FILENO) && SizeOfTerminal().has_value()) {
    return std::make_unique<LiveDisplay>();
  }
  return std::make_unique<PlainDisplay>();
}

void RestoreTerminal() {
  if (!isatty(STDOUT_FILENO)) return;
  std::fputs(kShowCursor, stdout);
  std::fflush(stdout);
}

std::size_t TerminalWidth(std::size_t otherwise) {
  const std::optional<TerminalSize> size = SizeOfTerminal();
  return size.has_value() && isatty(STDOUT_FILENO) ? size->width : otherwise;
}

}  // namespace espalier
