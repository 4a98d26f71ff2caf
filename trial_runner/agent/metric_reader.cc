#include "trial_runner/agent/metric_reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shortened.h"
#include "trial_runner/agent/last_output.h"
#include "trial_runner/agent/terminal_text.h"

namespace espalier {
namespace {

constexpr std::size_t kNearLines = 3;
constexpr std::size_t kNearLine_bytes = 120;
constexpr std::size_t kShortestWord = 2;

// The words that the pattern spells out: runs of letters, but for those of escapes and names of
// groups.
std::vector<std::string> WordsOf(const std::string& pattern) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (word.size() >= kShortestWord) words.push_back(absl::AsciiStrToLower(word));
    word.clear();
  };
  bool in_set = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (!in_set && absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      word.push_back(c);
      continue;
    }
    end_word();
    if (c == '\\') ++i;
    if (c == '[') in_set = true;
    if (c == ']') in_set = false;
    const bool group = c == '(' && pattern.substr(i + 1).starts_with('?');
    if (group) i = std::min(pattern.find_first_of(":>)", i), pattern.size() - 1);
  }
  end_word();
  return words;
}

}  // namespace

MetricReader::MetricReader(const v1::OutputMetric& metric, OutputPattern pattern)
    : text_(metric.pattern()), pattern_(std::move(pattern)), words_(WordsOf(text_)) {}

absl::StatusOr<MetricReader> MetricReader::Make(const v1::OutputMetric& metric) {
  const std::vector<std::string> figures(metric.figures().begin(), metric.figures().end());
  ESPALIER_ASSIGN_OR_RETURN(OutputPattern pattern,
                            OutputPattern::Make(metric.pattern(), metric.step(), figures));
  return MetricReader(metric, std::move(pattern));
}

std::vector<v1::Report> MetricReader::Take(std::string_view printed) {
  std::vector<v1::Report> reports;
  while (!printed.empty()) {
    const std::size_t end = std::min(printed.find_first_of("\r\n"), printed.size());
    Add(printed.substr(0, end));
    if (end == printed.size()) break;
    EndLine(reports);
    printed.remove_prefix(end + 1);
  }
  return reports;
}

std::vector<v1::Report> MetricReader::End() {
  std::vector<v1::Report> reports;
  EndLine(reports);
  return reports;
}

void MetricReader::Add(std::string_view part) {
  line_.append(part.substr(0, kMaxOutputLine_bytes - line_.size()));
}

void MetricReader::EndLine(std::vector<v1::Report>& reports) {
  if (line_.empty()) return;
  const std::string line = ValidUtf8(TerminalText(line_));
  line_.clear();
  const OutputPattern::Line read = pattern_.Read(line);
  if (read.step) step_ = read.step;
  if (!read.value) {
    if (!found_) NoteNear(line, read.no_number);
    return;
  }
  found_ = true;
  near_.clear();
  v1::Report& report = reports.emplace_back();
  report.set_step(step_.value_or(++counted_));
  report.set_value(*read.value);
  report.mutable_extra()->insert(read.figures.begin(), read.figures.end());
}

void MetricReader::NoteNear(std::string_view line, const std::string& no_number) {
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  const std::string lower = absl::AsciiStrToLower(std::string(line));
  int score = no_number.empty() ? 0 : 100;
  for (const std::string& word : words_) score += lower.find(word) == std::string::npos ? 0 : 2;
  if (lower.find_first_of("0123456789") != std::string::npos) score += 1;
  // Of equals the later one: what a program prints first is about other things.
  const auto place = std::find_if(near_.begin(), near_.end(),
                                  [score](const NearLine& each) { return each.first <= score; });
  if (place == near_.end() && near_.size() == kNearLines) return;
  std::string shown = absl::StrCat("\"", Shortened(line, kNearLine_bytes), "\"");
  if (!no_number.empty()) absl::StrAppend(&shown, " (", Shortened(no_number, kNearLine_bytes), ")");
  near_.insert(place, {score, std::move(shown)});
  if (near_.size() > kNearLines) near_.pop_back();
}

std::string MetricReader::WhyNone() const {
  std::string why = absl::StrCat(
      "it ended, and nothing that it printed has a value by \"from_output\": \"", text_, "\"");
  if (near_.empty()) return why + ": it has printed nothing";
  absl::StrAppend(&why, "; the nearest lines: ");
  for (std::size_t i = 0; i < near_.size(); ++i) {
    absl::StrAppend(&why, i > 0 ? ", " : "", near_[i].second);
  }
  return why;
}

void MetricReader::HandOver(v1::HandedOutput& handed) const {
  handed.set_line(line_);
  handed.set_counted(counted_);
  if (step_) handed.set_step(*step_);
  handed.set_found(found_);
}

void MetricReader::TakeOver(const v1::HandedOutput& handed) {
  line_ = handed.line();
  counted_ = handed.counted();
  if (handed.has_step()) step_ = handed.step();
  found_ = handed.found();
}

}  // namespace espalier
