#include "tuner/cli/report/page.h"

#include <utility>

#include "tuner/api/recorded_state.h"
#include "tuner/api/resting_tuner.h"
#include "tuner/cli/report/facts.h"
#include "tuner/cli/report/record_file.h"
#include "tuner/cli/report/sweep.h"
#include "tuner/cli/report/tables.h"
#include "tuner/web/view/views.h"

namespace espalier {

bool IsReportOn(const std::string& study, std::string_view page) {
  return page.find(report::TitleOf(study)) != std::string_view::npos;
}

absl::StatusOr<std::string> ReportPage(const v1::StudyDetails& details, double now,
                                       const ReportOptions& options) {
  const Time at = TimeFromSeconds(now);
  ESPALIER_ASSIGN_OR_RETURN(TunerState state, StateOf(details, at));
  const StudyId study = state.last_study;
  RestingTuner tuner(std::move(state), at, /*shows_secrets=*/false);
  const report::Sweep sweep = report::SweepOf(details, options.target, now);
  std::map<std::string, std::string> more = {{"report", report::FactsJson(details, sweep, now)}};
  if (!options.comparison.empty()) more.emplace("comparison", options.comparison);
  const view::Source source{.tuner = tuner};
  ESPALIER_ASSIGN_OR_RETURN(const std::string record, view::RecordJson(source, study, more));
  return report::RecordFile({.title = details.study().name(),
                             .tables = report::Tables(details, sweep, now),
                             .record = record},
                            WebAssets());
}

}  // namespace espalier
