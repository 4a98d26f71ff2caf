// Verbs that only read: ls, show, logs, export, report.

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/api/json.h"
#include "tuner/cli/display.h"
#include "tuner/cli/export.h"
#include "tuner/cli/files.h"
#include "tuner/cli/promise_record.h"
#include "tuner/cli/report/page.h"
#include "tuner/cli/report/sweep.h"
#include "tuner/cli/study_source.h"
#include "tuner/cli/table.h"
#include "tuner/cli/text.h"
#include "tuner/cli/trial_text.h"
#include "tuner/cli/verb.h"

namespace espalier {
namespace {

constexpr std::size_t kWidthOffTerminal = 160;

struct ReadArguments {
  SourceArguments source;
  std::string study;
  std::int64_t trial = -1;
  std::string format = "csv";
  std::string out;
  int lines = 0;  // 0: all
  std::optional<double> target;
};

std::shared_ptr<ReadArguments> AddReadArguments(CLI::App& app) {
  auto a = std::make_shared<ReadArguments>();
  app.add_option("study", a->study, "Name of the study")->required()->type_name("STUDY");
  a->source.AddTo(app);
  return a;
}

absl::Status List(StudySource& source, const ReadArguments&) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse list, source.ListStudies());
  std::vector<std::vector<std::string>> rows = {
      {"study", "state", "running time", "best", "trials"}};
  for (const v1::Study& study : list.studies()) {
    rows.push_back({study.name(), StateName(study.state()), FormatDuration(study.elapsed_s()),
                    study.has_best_value()
                        ? fmt::format("{} {}", study.metric(), FormatValue(study.best_value()))
                        : "",
                    TrialCounts(study)});
  }
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
  return absl::OkStatus();
}

absl::Status Show(StudySource& source, const ReadArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source.GetStudy(arguments.study));
  if (arguments.trial < 0) {
    const TableOptions options{.width = TerminalWidth(kWidthOffTerminal),
                               .height = std::numeric_limits<std::size_t>::max(),
                               .now = source.Now()};
    for (const TableLine& line : RenderTable(details, options)) std::puts(line.text.c_str());
    const std::string promise = PromiseLine(PromiseReliability(details));
    if (!promise.empty()) std::puts(promise.c_str());
    if (!details.study().notice().empty()) {
      std::printf("note: %s\n", details.study().notice().c_str());
    }
    return absl::OkStatus();
  }
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, NamedTrial(details, arguments.trial));
  for (const std::string& line : TrialText(details, trial, source.Now())) std::puts(line.c_str());
  return absl::OkStatus();
}

absl::Status WriteOut(const std::string& path, const std::string& text) {
  if (!path.empty()) return WriteFile(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return absl::InternalError("cannot write to stdout");
  }
  return absl::OkStatus();
}

// The last lines of a text; 0: all.
std::string_view LastLines(std::string_view text, int lines) {
  if (lines == 0) return text;
  std::size_t begin = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (int seen = 0; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && ++seen == lines) break;
  }
  return text.substr(begin);
}

absl::Status Logs(StudySource& source, const ReadArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details,
                            source.GetStudy(arguments.study, /*with_values=*/false));
  ESPALIER_ASSIGN_OR_RETURN(const v1::Trial trial, NamedTrial(details, arguments.trial));
  v1::TrialOutputRequest request;
  request.set_trial_id(trial.id());
  ESPALIER_ASSIGN_OR_RETURN(const v1::TrialOutput output, source.GetTrialOutput(request));
  return WriteOut("", std::string(LastLines(output.text(), arguments.lines)));
}

absl::Status Export(StudySource& source, const ReadArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source.GetStudy(arguments.study));
  return WriteOut(arguments.out,
                  arguments.format == "json" ? MessageToJson(details) + "\n" : ExportCsv(details));
}

absl::Status ReportText(const v1::StudyDetails& details, double now,
                        const ReadArguments& arguments) {
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

absl::Status Report(StudySource& source, const ReadArguments& arguments) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::StudyDetails details, source.GetStudy(arguments.study));
  if (arguments.format == "text") return ReportText(details, source.Now(), arguments);
  const std::string path = arguments.out.empty() ? "report.html" : arguments.out;
  ESPALIER_RETURN_IF_ERROR(WriteFile(path, ReportPage(details, source.Now(), arguments.target)));
  std::printf("%s\n", path.c_str());
  return absl::OkStatus();
}

ExitCode Read(const std::string& verb, const ReadArguments& arguments,
              absl::Status (*action)(StudySource&, const ReadArguments&)) {
  absl::StatusOr<std::unique_ptr<StudySource>> source = arguments.source.Open();
  if (!source.ok()) return Fail(verb, source.status());
  const absl::Status status = action(**source, arguments);
  return status.ok() ? ExitCode::kOk : Fail(verb, status);
}

}  // namespace

VerbAction AddList(CLI::App& app) {
  auto a = std::make_shared<ReadArguments>();
  a->source.AddTo(app);
  return [a] { return Read("ls", *a, List); };
}

VerbAction AddShow(CLI::App& app) {
  auto a = AddReadArguments(app);
  app.add_option("--trial", a->trial, "Number of a trial to show in full")
      ->check(CLI::NonNegativeNumber);
  return [a] { return Read("show", *a, Show); };
}

VerbAction AddLogs(CLI::App& app) {
  auto a = AddReadArguments(app);
  app.add_option("trial", a->trial, "Number of the trial")
      ->required()
      ->type_name("TRIAL")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-n,--lines", a->lines, "Only the last so many lines (default: the newest MiB)")
      ->check(CLI::PositiveNumber);
  return [a] { return Read("logs", *a, Logs); };
}

VerbAction AddExport(CLI::App& app) {
  auto a = AddReadArguments(app);
  app.add_option("--format", a->format,
                 "csv: one row a trial and reported step, with its parameters, step, value, "
                 "at_s (seconds since the study's creation), global_batch_size, slots held then, "
                 "and the trial's final_value, started_s, ended_s, slot_seconds, restarts, "
                 "reason. json: everything, as StudyDetails of tuner.proto: also the slots held "
                 "over time and the decisions (a service tells the newest 20,000, a file with "
                 "--db has all)")
      ->check(CLI::IsMember({"csv", "json"}))
      ->capture_default_str();
  app.add_option("--out", a->out, "File to write (default: stdout)");
  return [a] { return Read("export", *a, Export); };
}

VerbAction AddReport(CLI::App& app) {
  auto a = AddReadArguments(app);
  a->format = "html";
  app.add_option("--format", a->format,
                 "html: a page with pictures. text: what the sweep showed by scaling rule and "
                 "batch size, a table for the terminal")
      ->check(CLI::IsMember({"html", "text"}))
      ->capture_default_str();
  app.add_option("--target", a->target,
                 "Value of the metric by whose time batch sizes and scaling rules are compared "
                 "(default: the study's target, else the best value that each of them reached)");
  app.add_option("--out", a->out, "File to write (default: report.html; text: stdout)");
  return [a] { return Read("report", *a, Report); };
}

}  // namespace espalier
