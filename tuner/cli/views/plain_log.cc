#include "tuner/cli/views/plain_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

// The first decision of `after` that `before` did not have. Old ones may have been dropped at the
// front, so the newest one of `before` is looked for by what it says.
int FirstNew(const v1::StudyDetails& before, const v1::StudyDetails& after) {
  if (before.decisions_size() == 0) return 0;
  const v1::Decision& last = before.decisions(before.decisions_size() - 1);
  for (int i = after.decisions_size() - 1; i >= 0; --i) {
    const v1::Decision& decision = after.decisions(i);
    if (decision.at() < last.at()) return i + 1;
    if (decision.at() == last.at() && decision.trial_number() == last.trial_number() &&
        decision.kind() == last.kind() && decision.reason() == last.reason()) {
      return i + 1;
    }
  }
  return 0;
}

std::vector<std::string> LastOutput(const v1::Trial& trial) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  const std::string& text = trial.last_output();
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    if (end > from) lines.push_back("    | " + Cut(text.substr(from, end - from), 200));
    from = end + 1;
  }
  if (lines.size() > kOutputLinesShown) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kOutputLinesShown));
  }
  return lines;
}

std::string Verb(const v1::Decision& decision) {
  const std::string& kind = decision.kind();
  if (kind == "start") return fmt::format("started on {}", Count(decision.to_slots(), "slot"));
  if (kind == "grow") {
    return fmt::format("grew {} -> {} slots", decision.from_slots(), decision.to_slots());
  }
  if (kind == "shrink") {
    return fmt::format("shrank {} -> {} slots", decision.from_slots(), decision.to_slots());
  }
  if (kind == "move") return "moved";
  if (kind == "prune") return "pruned";
  if (kind == "pause") return "paused";
  if (kind == "resume") return fmt::format("resumed on {}", Count(decision.to_slots(), "slot"));
  if (kind == "restart") return "restarted";
  if (kind == "finish") return "finished";
  if (kind == "fail") return "failed";
  return kind;
}

std::string TrialLine(const v1::StudyDetails& details, const v1::Decision& decision) {
  if (decision.kind() == "study") {  // what it is told of, and nothing that was done to it
    return fmt::format("{} trial {}: {}", FormatClock(decision.at()), decision.trial_number(),
                       decision.reason());
  }
  std::string line = fmt::format("{} trial {} {}", FormatClock(decision.at()),
                                 decision.trial_number(), Verb(decision));
  const v1::Trial* trial = FindTrial(details, decision.trial_number());
  const std::string& kind = decision.kind();
  if (trial != nullptr && kind == "start") line += ": " + DisplayParameters(*trial);
  if (trial != nullptr && (kind == "finish" || kind == "prune") && trial->has_value()) {
    const std::string value =
        fmt::format("{} {}", details.study().metric(), FormatValue(trial->value()));
    const std::string step = trial->step() > 0 ? fmt::format(" at step {}", trial->step()) : "";
    // A pruned trial's value is the best one that it has told at any step.
    line += kind == "prune" ? step + ", best " + value : ", " + value + step;
  }
  if (!decision.reason().empty()) line += fmt::format(" ({})", decision.reason());
  return line;
}

void AppendEvent(const v1::StudyDetails& details, const v1::Decision& decision,
                 std::vector<std::string>& lines) {
  if (decision.trial_number() < 0) {
    lines.push_back(fmt::format("{} study {}: {}", FormatClock(decision.at()),
                                details.study().name(), decision.reason()));
    return;
  }
  lines.push_back(TrialLine(details, decision));
  if (decision.kind() != "fail") return;
  if (const v1::Trial* trial = FindTrial(details, decision.trial_number())) {
    for (std::string& line : LastOutput(*trial)) lines.push_back(std::move(line));
  }
}

}  // namespace

std::vector<std::string> EventLines(const v1::StudyDetails& before, const v1::StudyDetails& after) {
  std::vector<std::string> lines;
  const std::string& notice = after.study().notice();
  if (!notice.empty() && notice != before.study().notice()) lines.push_back("note: " + notice);
  for (int i = FirstNew(before, after); i < after.decisions_size(); ++i) {
    AppendEvent(after, after.decisions(i), lines);
  }
  return lines;
}

std::vector<std::string> FailureLines(const v1::StudyDetails& before,
                                      const v1::StudyDetails& after) {
  std::vector<std::string> lines;
  for (int i = FirstNew(before, after); i < after.decisions_size(); ++i) {
    const v1::Decision& decision = after.decisions(i);
    if (decision.kind() == "fail" || decision.kind() == "restart") {
      AppendEvent(after, decision, lines);
    }
  }
  return lines;
}

std::string StatusLine(const v1::StudyDetails& details) {
  const v1::Study& study = details.study();
  std::string line =
      fmt::format("{} after {}: {}; slots {}/{}; ", study.name(), FormatDuration(study.elapsed_s()),
                  TrialCounts(study), details.pool().slots_held(), details.pool().slots());
  if (study.remaining_s() >= 0 && study.state() == v1::STUDY_RUNNING) {
    line += fmt::format("about {} left; ", FormatDuration(study.remaining_s()));
  }
  return line + BestSoFar(details);
}

}  // namespace espalier
