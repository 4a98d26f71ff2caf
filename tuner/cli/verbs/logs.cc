// `tuner logs`: shows what a trial has printed.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/new_output.h"
#include "tuner/cli/views/study_text.h"

namespace espalier {
namespace {

constexpr std::chrono::milliseconds kPace{500};  // of --follow

struct LogsArguments {
  SourceArguments source;
  std::string study;
  std::int64_t trial = 0;
  int lines = 0;  // 0: all
  int rank = 0;
  bool follow = false;
};

// The last lines of a text; 0: all.
std::string_view LastLines(std::string_view text, int lines) {
  if (lines == 0) return text;
  std::size_t begin = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (int seen = 0; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && ++seen == lines) break;
  }
  return text.substr(begin);
}

// Whether the trial prints no more. One that waits or is paused may yet.
absl::StatusOr<bool> IsOver(StudySource& source, const LogsArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details,
                            source.GetStudy(arguments.study, /*with_values=*/false));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, NamedTrial(details, arguments.trial));
  return trial.ended_at() > 0 || details.study().state() != v1::STUDY_RUNNING || !source.live();
}

// Empty: the trial has not begun, and is waited for.
absl::StatusOr<std::string> OutputOf(StudySource& source, std::int64_t trial_id, int rank,
                                     bool wait) {
  v1::TrialOutputRequest request;
  request.set_trial_id(trial_id);
  request.set_rank(rank);
  absl::StatusOr<v1::TrialOutput> output = source.GetTrialOutput(request);
  if (wait && absl::IsNotFound(output.status())) return "";
  if (!output.ok()) return output.status();
  return std::move(*output->mutable_text());
}

absl::Status Logs(StudySource& source, const LogsArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details,
                            source.GetStudy(arguments.study, /*with_values=*/false));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, NamedTrial(details, arguments.trial));
  bool over = !arguments.follow;
  if (arguments.follow) {
    ESPALIER_ASSIGN_OR_RETURN(over, IsOver(source, arguments));
  }
  ESPALIER_ASSIGN_OR_RETURN(std::string output,
                            OutputOf(source, trial.id(), arguments.rank, !over));
  ESPALIER_RETURN_IF_ERROR(WriteOut("", std::string(LastLines(output, arguments.lines))));
  while (!over && !ReaderIsGone()) {
    std::this_thread::sleep_for(kPace);
    // Asked first, so that nothing is printed after the output that is asked for next.
    ESPALIER_ASSIGN_OR_RETURN(over, IsOver(source, arguments));
    ESPALIER_ASSIGN_OR_RETURN(std::string now,
                              OutputOf(source, trial.id(), arguments.rank, /*wait=*/true));
    if (now.empty()) continue;
    ESPALIER_RETURN_IF_ERROR(WriteOut("", NewOutput(output, now)));
    output = std::move(now);
  }
  return absl::OkStatus();
}

}  // namespace

VerbAction AddLogs(CliCommand& command) {
  auto a = std::make_shared<LogsArguments>();
  AddStudyName(command, a->study);
  a->source.AddTo(command);
  AddTrialNumber(command, a->trial).NonNegative();
  command
      .AddOption("-n,--lines", a->lines,
                 "Show only this many lines, the last ones (default: the newest MiB)")
      .Positive();
  command
      .AddOption("--rank", a->rank,
                 "Show what this rank of a study with \"launch\" has printed (default: 0, whose "
                 "output is the trial's)")
      .NonNegative();
  command.AddFlag("-f,--follow", a->follow,
                  "Go on with what the trial prints, until it or its study has ended; one that has "
                  "not begun is waited for");
  return [a] {
    return WithSource("logs", a->study, a->source,
                      [a](StudySource& source) { return Logs(source, *a); });
  };
}

}  // namespace espalier
