// `tuner ls`: lists studies.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/connected_verb.h"
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

void PrintStudies(const v1::ListStudiesResponse& list) {
  const bool paid = std::any_of(list.studies().begin(), list.studies().end(),
                                [](const v1::Study& study) { return study.spent() > 0; });
  std::vector<std::vector<std::string>> rows = {
      {"study", "state", "running time", "best", "trials"}};
  if (paid) rows[0].emplace_back("spent");
  for (const v1::Study& study : list.studies()) {
    rows.push_back(std::vector<std::string>{
        study.name(), StateName(study.state()), FormatDuration(study.elapsed_s()),
        study.has_best_value() ? fmt::format("{} {} {}", BestIs(study), study.metric(),
                                             FormatValue(study.best_value()))
                               : "",
        TrialCounts(study)});
    if (paid) rows.back().push_back(study.spent() > 0 ? FormatValue(study.spent()) : "");
  }
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
}

absl::Status List(StudySource& source, bool json) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse list, source.ListStudies());
  json ? PrintMessage(list) : PrintStudies(list);
  return absl::OkStatus();
}

}  // namespace

VerbAction AddList(CliCommand& command) {
  auto a = std::make_shared<ListArguments>();
  a->source.AddTo(command);
  AddJson(command, a->json, "GET /api/studies sends it");
  return [a] {
    return WithSource("ls", a->source, [a](StudySource& source) { return List(source, a->json); });
  };
}

}  // namespace espalier
