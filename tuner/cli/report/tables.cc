#include "tuner/cli/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tuner/cli/report/markup.h"
#include "tuner/cli/views/promise_record.h"
#include "tuner/cli/views/record.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

using Row = std::vector<std::string>;

std::string Cells(const Row& row, const char* tag) {
  std::string html = "<tr>";
  for (const std::string& cell : row) html += fmt::format("<{0}>{1}</{0}>", tag, Escape(cell));
  return html + "</tr>\n";
}

// The first row is the heading.
std::string Table(const std::vector<Row>& rows) {
  std::string html = "<table>\n<thead>" + Cells(rows.front(), "th") + "</thead>\n<tbody>\n";
  for (std::size_t i = 1; i < rows.size(); ++i) html += Cells(rows[i], "td");
  return html + "</tbody>\n</table>\n";
}

std::string Line(const std::string& text) { return "<p>" + Escape(text) + "</p>\n"; }

Row TrialRow(const v1::StudyDetails& details, const v1::Trial& trial, double now) {
  const std::int64_t step = StepOfValue(details.study(), trial);
  const ResizeCounts resizes = CountResizes(trial);
  std::string reason = trial.reason();
  if (trial.restarts() > 0) reason += fmt::format(" ({})", Count(trial.restarts(), "restart"));
  return Row{std::to_string(trial.number()),
             StateName(trial.state()),
             trial.has_value() ? FormatValue(trial.value()) : "",
             step > 0 ? std::to_string(step) : "",
             DisplayParameters(trial),
             std::to_string(MostSlotsHeld(trial)),
             fmt::format("{:.1f}", SlotSeconds(trial, now)),
             fmt::format("{}/{}", resizes.grown, resizes.shrunk),
             reason};
}

std::string Trials(const v1::StudyDetails& details, double now) {
  const std::vector<const v1::Trial*> trials = BestFirst(details);
  const std::size_t shown = std::min(trials.size(), kMaxTrialRows);
  std::vector<Row> rows = {Row{"trial", "state", MetricName(details.study()), "at step",
                               "parameters", "most slots", "slot-seconds", "grown/shrunk",
                               "reason"}};
  for (std::size_t i = 0; i < shown; ++i) rows.push_back(TrialRow(details, *trials[i], now));
  std::string html = "<h2>Trials, the best first</h2>\n" + Table(rows);
  if (shown < trials.size()) {
    html += Line(fmt::format("The best {} of {} trials.", shown, trials.size()));
  }
  return html;
}

std::string Summary(const v1::StudyDetails& details, double now) {
  const v1::Study& study = details.study();
  const Utilisation use = UtilisationOf(details, now);
  std::string html = "<h1>" + Escape(study.name()) + "</h1>\n";
  html += Line(StateName(study.state()) + (study.reason().empty() ? "" : ": " + study.reason()) +
               (study.maximize() ? "; maximizes " : "; minimizes ") + study.metric());
  if (!study.like().empty()) html += Line("It " + study.like());
  if (!study.notice().empty()) html += Line("Note: " + study.notice());
  if (study.has_best_trial()) {
    const v1::Trial* best = FindTrial(details, study.best_trial());
    html += Line(fmt::format("Best {}: {}, of trial {}{}", study.metric(),
                             FormatValue(study.best_value()), study.best_trial(),
                             best == nullptr ? "" : ", with " + DisplayParameters(*best)));
  }
  if (const std::string constraints = ConstraintsText(details); !constraints.empty()) {
    html += Line("Constraints: " + constraints + ".");
  }
  html += Line(fmt::format("{}; {} of running time; {} held for {:.1f} % of it; {}.",
                           Count(details.trials_size(), "trial"), FormatDuration(study.elapsed_s()),
                           Count(static_cast<std::int64_t>(LanesOf(details).size()), "slot"),
                           100 * use.overall, Count(details.decisions_size(), "decision")));
  return html;
}

}  // namespace

std::string Tables(const v1::StudyDetails& details, const Sweep& sweep, double now) {
  std::string html = Summary(details, now) + Trials(details, now);
  if (!sweep.groups.empty()) {
    html += "<h2>By scaling rule and batch size</h2>\n" + Table(SweepRows(details, sweep));
  }
  const Reliability promise = PromiseReliability(details);
  if (promise.count > 0) html += Line(PromiseLine(promise));
  return html;
}

}  // namespace espalier::report
