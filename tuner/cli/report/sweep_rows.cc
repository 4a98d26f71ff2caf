// A sweep over batch sizes and scaling rules as a table.

#include <fmt/format.h>

#include "tuner/cli/report/sweep.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

using Row = std::vector<std::string>;

std::string Median(const std::vector<double>& sorted) {
  if (sorted.empty()) return "";
  const std::size_t n = sorted.size();
  const double upper = sorted[n / 2];
  return FormatValue(n % 2 == 1 ? upper : (sorted[n / 2 - 1] + upper) / 2);
}

std::string ToTarget(const Sweep& sweep) {
  return sweep.target ? "time to " + FormatValue(*sweep.target) : "time to target";
}

}  // namespace

std::vector<Row> SweepRows(const v1::StudyDetails& details, const Sweep& sweep) {
  const std::string metric = MetricName(details.study());
  std::vector<Row> rows = {Row{"scaling rule", "batch size", "trials", "best " + metric, "median",
                               ToTarget(sweep), "slot-seconds", "steps", "reached", "pruned",
                               "failed"}};
  for (const SweepGroup& group : sweep.groups) {
    const Reached* first = group.reached.empty() ? nullptr : &group.reached.front();
    rows.push_back(Row{group.rule, group.batch, std::to_string(group.trials),
                       group.values.empty() ? "" : FormatValue(group.values.front()),
                       Median(group.values), first ? FormatDuration(first->seconds) : "",
                       first ? fmt::format("{:.1f}", first->slot_seconds) : "",
                       first ? std::to_string(first->step) : "",
                       fmt::format("{} of {}", group.reached.size(), group.trials),
                       std::to_string(group.pruned), std::to_string(group.failed)});
  }
  return rows;
}

std::vector<std::string> SweepLines(const v1::StudyDetails& details, const Sweep& sweep) {
  return Columns(SweepRows(details, sweep));
}

}  // namespace espalier::report
