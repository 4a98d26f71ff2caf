// `tuner report`: writes a study's record as a page, or its sweep as text.

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tuner/cli/connected_verb.h"
#include "tuner/cli/local_runs.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/report/page.h"
#include "tuner/cli/report/sweep.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

struct ReportArguments {
  SourceArguments source;
  std::string study;
  std::string format = "html";
  std::string out;  // empty: report-STUDY.html, or stdout
  std::optional<double> target;
};

absl::Status ReportText(const v1::StudyDetails& details, double now,
                        const ReportArguments& arguments) {
  const report::Sweep sweep = report::SweepOf(details, arguments.target, now);
  if (sweep.groups.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("study \"", arguments.study,
                     "\" has no parameter batch_size or scaling_rule to compare by"));
  }
  std::string text;
  for (const std::string& line : report::SweepLines(details, sweep)) {
    absl::StrAppend(&text, line, "\n");
  }
  return WriteOut(arguments.out, text);
}

// Two studies' names may come to one file's, and a file of that name may be something else.
absl::StatusOr<std::string> OwnReportFile(const std::string& study) {
  const std::string path = "report-" + FileNameOf(study) + ".html";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return path;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok() && IsReportOn(study, *text)) return path;
  return absl::FailedPreconditionError(absl::StrCat(path, " is there, and is no report on study \"",
                                                    study, "\": name another file with --out"));
}

absl::Status Report(StudySource& source, const ReportArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source.GetStudy(arguments.study));
  if (arguments.format == "text") return ReportText(details, source.Now(), arguments);
  std::string path = arguments.out;
  if (path.empty()) {
    ESPALIER_ASSIGN_OR_RETURN(path, OwnReportFile(details.study().name()));
  }
  ESPALIER_ASSIGN_OR_RETURN(
      const std::string page,
      ReportPage(details, source.Now(), {.target = arguments.target, .comparison = {}}));
  ESPALIER_RETURN_IF_ERROR(WriteFile(path, page));
  std::printf("%s\n", path.c_str());
  return absl::OkStatus();
}

}  // namespace

VerbAction AddReport(CliCommand& command) {
  auto a = std::make_shared<ReportArguments>();
  AddStudyName(command, a->study);
  a->source.AddTo(command);
  command
      .AddOption("--format", a->format,
                 "html: the service's page with the study in it; text: a table that compares "
                 "scaling rules and batch sizes")
      .OneOf({"html", "text"})
      .ShowDefault();
  command.AddOption(
      "--target", a->target,
      "Value of the metric: batch sizes and scaling rules are compared by the time to reach it "
      "(default: the study's target, else the best value that all of them reached)");
  command.AddOption("--out", a->out, "File to write (default: report-STUDY.html; text: stdout)");
  return [a] {
    return WithSource("report", a->study, a->source,
                      [a](StudySource& source) { return Report(source, *a); });
  };
}

}  // namespace espalier
