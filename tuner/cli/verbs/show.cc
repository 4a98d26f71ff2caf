// `tuner show`: shows a study's trials, or one trial in full.

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/display.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/promise_record.h"
#include "tuner/cli/views/record.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"
#include "tuner/cli/views/trial_text.h"

namespace espalier {
namespace {

struct ShowArguments {
  SourceArguments source;
  std::string study;
  std::int64_t trial = -1;  // none: the study
  bool promise = false;
  bool json = false;
};

constexpr std::size_t kWidthOffTerminal = 160;

void ShowTrial(const v1::StudyDetails& details, const v1::Trial& trial, double now) {
  for (const std::string& line : TrialText(details, trial, now)) std::puts(line.c_str());
}

void ShowStudy(const v1::StudyDetails& details, double now) {
  const TableOptions options{.width = TerminalWidth(kWidthOffTerminal),
                             .height = std::numeric_limits<std::size_t>::max(),
                             .now = now};
  for (const TableLine& line : RenderTable(details, options)) std::puts(line.text.c_str());
  if (!details.study().like().empty()) std::puts(details.study().like().c_str());
  const auto payments = PaymentRows(details.study().payments());
  if (payments.size() > 1) {
    std::puts("paid for slots");
    for (const std::string& line : Columns(payments)) std::printf("  %s\n", line.c_str());
  }
}

absl::Status Show(StudySource& source, const ShowArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source.GetStudy(arguments.study));
  if (arguments.trial < 0) {
    arguments.json ? PrintMessage(details) : ShowStudy(details, source.Now());
    if (arguments.promise) std::puts(PromiseLine(PromiseReliability(details)).c_str());
    return absl::OkStatus();
  }
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, NamedTrial(details, arguments.trial));
  arguments.json ? PrintMessage(trial) : ShowTrial(details, trial, source.Now());
  return absl::OkStatus();
}

}  // namespace

VerbAction AddShow(CliCommand& command) {
  auto a = std::make_shared<ShowArguments>();
  AddStudyName(command, a->study);
  a->source.AddTo(command);
  CliOption& trial =
      command.AddOption("--trial", a->trial, "Number of a trial to show in full").NonNegative();
  CliOption& promise =
      command.AddFlag("--promise", a->promise,
                      "Also print how often the promise of trials would have come true, replayed "
                      "from the record of a study that has ended");
  promise.Excludes(trial);
  AddJson(command, a->json,
          "GET /api/studies/STUDY sends it; with --trial, only that one of its \"trials\"");
  command.option("--json").Excludes(promise);
  return [a] {
    return WithSource("show", a->study, a->source,
                      [a](StudySource& source) { return Show(source, *a); });
  };
}

}  // namespace espalier
