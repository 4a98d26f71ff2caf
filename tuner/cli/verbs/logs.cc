// `tuner logs`: shows what a trial has printed.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/study_text.h"

namespace espalier {
namespace {

struct LogsArguments {
  SourceArguments source;
  std::string study;
  std::int64_t trial = 0;
  int lines = 0;  // 0: all
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

absl::Status Logs(StudySource& source, const LogsArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details,
                            source.GetStudy(arguments.study, /*with_values=*/false));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, NamedTrial(details, arguments.trial));
  v1::TrialOutputRequest request;
  request.set_trial_id(trial.id());
  ESPALIER_ASSIGN_OR_RETURN(const v1::TrialOutput output, source.GetTrialOutput(request));
  return WriteOut("", std::string(LastLines(output.text(), arguments.lines)));
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
  return [a] {
    return WithSource("logs", a->study, a->source,
                      [a](StudySource& source) { return Logs(source, *a); });
  };
}

}  // namespace espalier
