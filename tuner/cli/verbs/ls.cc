// `tuner ls`: lists studies.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/local_runs.h"
#include "tuner/cli/machine/files.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

struct ListArguments {
  SourceArguments source;
  bool json = false;
};

// A study, and the folder of its run if it is one of the current folder's.
struct ListedStudy {
  v1::Study study;
  std::string run;
};

void PrintStudies(const std::vector<ListedStudy>& list) {
  const bool paid = std::any_of(list.begin(), list.end(),
                                [](const ListedStudy& each) { return each.study.spent() > 0; });
  const bool runs = std::any_of(list.begin(), list.end(),
                                [](const ListedStudy& each) { return !each.run.empty(); });
  std::vector<std::vector<std::string>> rows = {
      {"study", "state", "running time", "best", "trials"}};
  if (paid) rows[0].emplace_back("spent");
  if (runs) rows[0].emplace_back("--dir");
  for (const auto& [study, run] : list) {
    rows.push_back(std::vector<std::string>{
        study.name(), StateName(study.state()), FormatDuration(study.elapsed_s()),
        study.has_best_value() ? fmt::format("{} {} {}", BestIs(study), study.metric(),
                                             FormatValue(study.best_value()))
                               : "",
        TrialCounts(study)});
    if (paid) rows.back().push_back(study.spent() > 0 ? FormatValue(study.spent()) : "");
    if (runs) rows.back().push_back(run);
  }
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
}

// The studies of one source, each with the folder of its run.
absl::Status AddStudies(StudySource& source, const std::string& run,
                        std::vector<ListedStudy>& list) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse studies, source.ListStudies());
  for (const v1::Study& study : studies.studies()) list.push_back({study, run});
  return absl::OkStatus();
}

void Print(const std::vector<ListedStudy>& list, bool json) {
  if (!json) return PrintStudies(list);
  v1::ListStudiesResponse response;
  for (const ListedStudy& each : list) *response.add_studies() = each.study;
  PrintMessage(response);
}

absl::Status List(StudySource& source, bool json) {
  std::vector<ListedStudy> list;
  ESPALIER_RETURN_IF_ERROR(AddStudies(source, "", list));
  Print(list, json);
  return absl::OkStatus();
}

// One run that cannot be read does not hide the others.
ExitCode ListRuns(const std::vector<std::string>& runs, bool json) {
  std::fprintf(stderr, "tuner ls: no service answers at %s; these are the runs of this folder\n",
               kDefaultService);
  ExitCode code = ExitCode::kOk;
  std::vector<ListedStudy> list;
  for (const std::string& run : runs) {
    SourceArguments arguments;
    arguments.service.directory = run;
    const absl::StatusOr<std::unique_ptr<StudySource>> source = arguments.Open();
    const absl::Status status = source.ok() ? AddStudies(**source, run, list) : source.status();
    if (!status.ok()) code = Fail("ls", Prefixed(run, status));
  }
  Print(list, json);
  return code;
}

}  // namespace

VerbAction AddList(CliCommand& command) {
  auto a = std::make_shared<ListArguments>();
  a->source.AddTo(command);
  AddJson(command, a->json, "GET /api/studies sends it");
  return [a] {
    const bool of_a_service = a->source.database.empty();
    if (of_a_service && MayMeanLocalRun(a->source.service)) {
      if (const auto runs = LocalRuns(); !runs.empty()) return ListRuns(runs, a->json);
    }
    return WithSource("ls", "", a->source,
                      [a](StudySource& source) { return List(source, a->json); });
  };
}

}  // namespace espalier
