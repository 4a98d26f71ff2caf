#include "tuner/cli/views/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tuner/cli/views/record.h"
#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

std::string Cell(const std::string& text) { return "<td>" + Escape(text) + "</td>"; }
std::string NumberCell(const std::string& text) {
  return "<td class=\"n\">" + Escape(text) + "</td>";
}
std::string Heading(std::initializer_list<const char*> names) {
  std::string html = "<thead><tr>";
  for (const char* name : names) html += fmt::format("<th>{}</th>", Escape(name));
  return html + "</tr></thead>\n";
}

std::string TrialRow(const v1::StudyDetails& details, const v1::Trial& trial, double now,
                     Color color) {
  const v1::Study& study = details.study();
  const bool best = study.has_best_trial() && study.best_trial() == trial.number();
  const ResizeCounts resizes = CountResizes(trial);
  const std::int64_t step = StepOfValue(study, trial);
  std::string row =
      fmt::format("<tr id=\"trial-{}\"{}>", trial.number(), best ? " class=\"best\"" : "");
  row += fmt::format(
      "<td class=\"n\"><span class=\"chip\" style=\"background:{};color:{}\">{}"
      "</span></td>",
      color.fill, color.ink, trial.number());
  row += Cell(StateName(trial.state()));
  row += NumberCell(trial.has_value() ? FormatValue(trial.value()) : "");
  row += NumberCell(step > 0 ? std::to_string(step) : "");
  row += "<td class=\"p\">" + Escape(DisplayParameters(trial)) + "</td>";
  row += NumberCell(std::to_string(MostSlotsHeld(trial)));
  row += NumberCell(fmt::format("{:.1f}", SlotSeconds(trial, now)));
  row += NumberCell(fmt::format("{}/{}", resizes.grown, resizes.shrunk));
  std::string reason = trial.reason();
  if (trial.restarts() > 0) reason += fmt::format(" ({})", Count(trial.restarts(), "restart"));
  row += "<td class=\"why\">" + Escape(reason);
  if (!trial.last_output().empty()) {
    row += "<details><summary>last output</summary><pre>" + Escape(trial.last_output()) +
           "</pre></details>";
  }
  return row + "</td></tr>\n";
}

}  // namespace

std::string TrialsTable(const v1::StudyDetails& details, double now, const TrialColors& colors) {
  const std::vector<const v1::Trial*> trials = BestFirst(details);
  const std::size_t shown = std::min(trials.size(), kMaxTrialRows);
  std::string html = "<div class=\"wide\"><table>\n";
  const std::string metric = MetricName(details.study());
  html += Heading(std::initializer_list<const char*>{"trial", "state", metric.c_str(), "at step",
                                                     "parameters", "most slots", "slot-seconds",
                                                     "grown/shrunk", "reason"});
  html += "<tbody>\n";
  for (std::size_t i = 0; i < shown; ++i) {
    html += TrialRow(details, *trials[i], now, colors.Of(trials[i]->number()));
  }
  html += "</tbody></table></div>\n";
  html += "<p class=\"legend\">";
  if (shown < trials.size()) {
    html += fmt::format("The best {} of {} trials. ", shown, trials.size());
  }
  return html +
         "The value of a complete trial is its last one, or the one that it ended with; that of "
         "another trial is its best so far. Complete trials rank before the others.</p>\n";
}

std::string DecisionsTable(const v1::StudyDetails& details) {
  const int total = details.decisions_size();
  if (total == 0) return "<p>Nothing was decided yet.</p>\n";
  const int first = std::max(0, total - kMaxDecisionRows);
  std::string html = fmt::format(
      "<p class=\"legend\">{}{}. Times count from the study's creation.</p>\n",
      first > 0 ? fmt::format("The last {} of ", kMaxDecisionRows) : "", Count(total, "decision"));
  html += "<div class=\"wide\"><table>\n" +
          Heading({"time", "trial", "decision", "slots", "reason"}) + "<tbody>\n";
  for (int i = first; i < total; ++i) {
    const v1::Decision& decision = details.decisions(i);
    const bool resized = decision.from_slots() != decision.to_slots();
    html += "<tr>" +
            NumberCell(fmt::format("{:.2f}s", decision.at() - details.study().created_at())) +
            NumberCell(decision.trial_number() < 0 ? "" : std::to_string(decision.trial_number())) +
            Cell(decision.kind()) +
            NumberCell(resized ? fmt::format("{} → {}", decision.from_slots(), decision.to_slots())
                               : "") +
            "<td class=\"why\">" + Escape(decision.reason()) + "</td></tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace espalier::report
