#include "tuner/cli/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "tuner/cli/record.h"
#include "tuner/cli/report/markup.h"
#include "tuner/cli/text.h"

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

std::string TrialRow(const v1::StudyDetails& details, const v1::Trial& trial, double now) {
  const v1::Study& study = details.study();
  const bool best = study.has_best_trial() && study.best_trial() == trial.number();
  const ResizeCounts resizes = CountResizes(trial);
  const std::int64_t step = BestStep(study, trial);
  std::string row =
      fmt::format("<tr id=\"trial-{}\"{}>", trial.number(), best ? " class=\"best\"" : "");
  row += fmt::format(
      "<td class=\"n\"><span class=\"chip\" style=\"background:{};color:{}\">{}"
      "</span></td>",
      TrialColor(trial.number()), InkOn(trial.number()), trial.number());
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

struct Group {
  std::vector<double> values;  // of trials that have one
  int trials = 0;
  int pruned = 0;
  int failed = 0;
};

// Batch sizes sort by number, names by letter.
using GroupKey = std::tuple<std::string, double, std::string>;

GroupKey KeyOf(const v1::Trial& trial) {
  const v1::Parameter* rule = FindParameter(trial, "scaling_rule");
  const v1::Parameter* batch = FindParameter(trial, "batch_size");
  const std::string size = batch == nullptr ? "" : DisplayParameter(*batch);
  return {rule == nullptr ? "" : DisplayParameter(*rule), std::strtod(size.c_str(), nullptr), size};
}

std::string GroupRow(const v1::Study& study, const GroupKey& key, Group group) {
  std::sort(group.values.begin(), group.values.end(),
            [&](double a, double b) { return BetterFor(study, a, b); });
  std::string best, median;
  if (const std::size_t n = group.values.size(); n > 0) {
    best = FormatValue(group.values[0]);
    const double upper = group.values[n / 2];
    median = FormatValue(n % 2 == 1 ? upper : (group.values[n / 2 - 1] + upper) / 2);
  }
  return "<tr>" + Cell(std::get<0>(key)) + NumberCell(std::get<2>(key)) +
         NumberCell(std::to_string(group.trials)) + NumberCell(best) + NumberCell(median) +
         NumberCell(std::to_string(group.pruned)) + NumberCell(std::to_string(group.failed)) +
         "</tr>\n";
}

}  // namespace

std::string TrialsTable(const v1::StudyDetails& details, double now) {
  const std::vector<const v1::Trial*> trials = BestFirst(details);
  const std::size_t shown = std::min(trials.size(), kMaxTrialRows);
  std::string html = "<div class=\"wide\"><table>\n";
  const std::string metric = details.study().metric().empty() ? "value" : details.study().metric();
  html += Heading({"trial", "state", metric.c_str(), "best step", "parameters", "most slots",
                   "slot-seconds", "grown/shrunk", "reason"});
  html += "<tbody>\n";
  for (std::size_t i = 0; i < shown; ++i) html += TrialRow(details, *trials[i], now);
  html += "</tbody></table></div>\n";
  if (shown < trials.size()) {
    html +=
        fmt::format("<p class=\"legend\">The best {} of {} trials.</p>\n", shown, trials.size());
  }
  return html;
}

std::string RulesTable(const v1::StudyDetails& details) {
  std::map<GroupKey, Group> groups;
  for (const v1::Trial& trial : details.trials()) {
    if (FindParameter(trial, "scaling_rule") == nullptr &&
        FindParameter(trial, "batch_size") == nullptr) {
      continue;
    }
    Group& group = groups[KeyOf(trial)];
    ++group.trials;
    group.pruned += trial.state() == v1::TRIAL_PRUNED;
    group.failed += trial.state() == v1::TRIAL_FAIL;
    if (trial.has_value()) group.values.push_back(trial.value());
  }
  if (groups.empty()) return {};
  std::string html =
      "<div class=\"wide\"><table>\n" +
      Heading({"scaling rule", "batch size", "trials", "best", "median", "pruned", "failed"}) +
      "<tbody>\n";
  for (auto& [key, group] : groups) html += GroupRow(details.study(), key, std::move(group));
  return html + "</tbody></table></div>\n";
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
