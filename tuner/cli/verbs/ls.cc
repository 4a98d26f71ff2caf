// `tuner ls`: lists studies.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/cli/connected_verb.h"
#include "tuner/cli/verb.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

absl::Status List(StudySource& source) {
  ESPALIER_ASSIGN_OR_RETURN(const v1::ListStudiesResponse list, source.ListStudies());
  std::vector<std::vector<std::string>> rows = {
      {"study", "state", "running time", "best", "trials"}};
  for (const v1::Study& study : list.studies()) {
    rows.push_back(std::vector<std::string>{
        study.name(), StateName(study.state()), FormatDuration(study.elapsed_s()),
        study.has_best_value()
            ? fmt::format("{} {}", study.metric(), FormatValue(study.best_value()))
            : "",
        TrialCounts(study)});
  }
  for (const std::string& line : Columns(rows)) std::puts(line.c_str());
  return absl::OkStatus();
}

}  // namespace

VerbAction AddList(CLI::App& app) {
  auto a = std::make_shared<SourceArguments>();
  a->AddTo(app);
  return [a] { return WithSource("ls", *a, List); };
}

}  // namespace espalier
