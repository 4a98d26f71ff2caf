// A sweep over batch sizes and scaling rules as a table and a picture.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "tuner/cli/views/report/axis.h"
#include "tuner/cli/views/report/colors.h"
#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/report/sweep.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

constexpr std::size_t kTextColumns = 2;  // rule and batch size; what follows are figures
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

std::vector<Row> Rows(const v1::StudyDetails& details, const Sweep& sweep) {
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

std::string Table(const v1::StudyDetails& details, const Sweep& sweep) {
  const std::vector<Row> rows = Rows(details, sweep);
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const std::string& name : rows.front()) html += "<th>" + Escape(name) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 1; i < rows.size(); ++i) {
    html += "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      html += (k + 1 < kTextColumns ? "<td>" : "<td class=\"n\">") + Escape(rows[i][k]) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

constexpr double kPanelWidth = 470;
constexpr double kPanelHeight = 280;
constexpr double kPanelLeft = 64;
constexpr double kPanelRight = 20;
constexpr double kPanelTop = 28;
constexpr double kPanelBottom = 44;

// One of the two pictures: batch sizes side by side, a colour a rule, a dot a trial, and a line
// through the best of each group.
struct Panel {
  std::string title;
  bool times;  // in seconds; else values of the metric
  // By group of the sweep: the best first.
  std::vector<std::vector<double>> points;
  Range range;
  std::vector<std::string> batches;  // in order
  std::vector<std::string> rules;

  double X(const SweepGroup& group) const {
    const auto at = std::find(batches.begin(), batches.end(), group.batch) - batches.begin();
    const double step =
        (kPanelWidth - kPanelLeft - kPanelRight) / static_cast<double>(batches.size());
    return kPanelLeft + (static_cast<double>(at) + 0.5) * step;
  }
  double Y(double value) const {
    return kPanelHeight - kPanelBottom -
           (value - range.low) / (range.high - range.low) *
               (kPanelHeight - kPanelTop - kPanelBottom);
  }
  // Rules side by side, so that their dots do not hide each other.
  double Shift(std::size_t rule) const {
    constexpr double kApart = 7;
    return kApart * (static_cast<double>(rule) - static_cast<double>(rules.size() - 1) / 2);
  }
};

std::string PanelAxes(const Panel& panel, const Sweep& sweep) {
  std::string svg = fmt::format("<text class=\"label\" x=\"{}\" y=\"14\">{}</text>\n", kPanelLeft,
                                Escape(panel.title));
  const std::vector<double> ticks = panel.times ? TimeTicks(panel.range.low, panel.range.high, 5)
                                                : AxisTicks(panel.range.low, panel.range.high, 5);
  const std::vector<std::string> labels = panel.times ? TimeLabels(ticks) : ValueLabels(ticks);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    svg += GridLine(kPanelLeft, kPanelWidth - kPanelRight, panel.Y(ticks[i]), labels[i]);
  }
  std::set<std::string> named;
  for (const SweepGroup& group : sweep.groups) {
    if (!named.insert(group.batch).second) continue;
    svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       Px(panel.X(group)), kPanelHeight - kPanelBottom + 17, Escape(group.batch));
  }
  return svg +
         fmt::format(
             "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">batch size</text>\n",
             kPanelWidth - kPanelRight, kPanelHeight - 8);
}

std::string RuleMarks(const Panel& panel, const Sweep& sweep, std::size_t rule) {
  const std::string color = StrongColor(rule).fill;
  std::string dots, line;
  for (std::size_t i = 0; i < sweep.groups.size(); ++i) {
    const SweepGroup& group = sweep.groups[i];
    if (group.rule != panel.rules[rule] || panel.points[i].empty()) continue;
    const double x = panel.X(group) + panel.Shift(rule);
    line += fmt::format("{}{} {}", line.empty() ? "M" : "L", Px(x),
                        Px(panel.Y(panel.points[i].front())));
    for (const double value : panel.points[i]) {
      if (!(value >= panel.range.low && value <= panel.range.high)) continue;
      dots += fmt::format(
          "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"><title>{}, batch size {}: {}</title>"
          "</circle>",
          Px(x), Px(panel.Y(value)), &value == &panel.points[i].front() ? 4 : 2.5, color,
          Escape(group.rule), Escape(group.batch),
          panel.times ? FormatDuration(value) : FormatValue(value));
    }
  }
  return fmt::format("<g class=\"curve\"><path d=\"{}\" stroke=\"{}\"/>{}</g>\n", line, color,
                     dots);
}

std::string PanelPicture(const Panel& panel, const Sweep& sweep) {
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                kPanelWidth, kPanelHeight, Escape(panel.title));
  svg += PanelAxes(panel, sweep);
  for (std::size_t rule = 0; rule < panel.rules.size(); ++rule) {
    svg += RuleMarks(panel, sweep, rule);
  }
  return svg + "</svg>\n";
}

Panel MakePanel(const Sweep& sweep, std::string title, bool times,
                std::vector<std::vector<double>> points, bool maximize) {
  Panel panel{.title = std::move(title),
              .times = times,
              .points = std::move(points),
              .range = {},
              .batches = {},
              .rules = {}};
  std::vector<double> all;
  for (const auto& of_group : panel.points) all.insert(all.end(), of_group.begin(), of_group.end());
  panel.range = FencedRange(std::move(all), maximize);
  if (times) panel.range.low = std::max(0.0, panel.range.low);
  std::map<std::pair<double, std::string>, bool> batches;
  for (const SweepGroup& group : sweep.groups) {
    batches[{group.batch_size, group.batch}] = true;
    if (panel.rules.empty() || panel.rules.back() != group.rule) panel.rules.push_back(group.rule);
  }
  for (const auto& [key, there] : batches) panel.batches.push_back(key.second);
  return panel;
}

std::string Legend(const Panel& panel, const Sweep& sweep) {
  std::string html = "<p class=\"legend\">";
  for (std::size_t rule = 0; rule < panel.rules.size(); ++rule) {
    if (panel.rules[rule].empty()) continue;
    const Color color = StrongColor(rule);
    html += fmt::format("<span class=\"chip\" style=\"background:{};color:{}\">{}</span> ",
                        color.fill, color.ink, Escape(panel.rules[rule]));
  }
  html += "A dot is a trial; lines join the best of each batch size. ";
  if (sweep.target) {
    html += fmt::format(
        "Times are those in which the trial held slots until it reported {} or better{}.",
        FormatValue(*sweep.target),
        sweep.target_given ? "" : ", the best value that every group reached");
  }
  return html + "</p>\n";
}

}  // namespace

std::string SweepSection(const v1::StudyDetails& details, const Sweep& sweep) {
  if (sweep.groups.empty()) return {};
  std::vector<std::vector<double>> values, times;
  bool any_value = false, any_time = false;
  for (const SweepGroup& group : sweep.groups) {
    values.emplace_back();
    for (const double value : group.values) {
      if (std::isfinite(value)) values.back().push_back(value);
    }
    times.emplace_back();
    for (const Reached& reached : group.reached) times.back().push_back(reached.seconds);
    any_value |= !values.back().empty();
    any_time |= !times.back().empty();
  }
  std::string html;
  if (any_value) {
    const std::string metric = MetricName(details.study());
    const Panel metric_panel =
        MakePanel(sweep, metric, /*times=*/false, std::move(values), details.study().maximize());
    html += "<div class=\"pair\">\n" + PanelPicture(metric_panel, sweep);
    if (any_time) {
      html += PanelPicture(
          MakePanel(sweep, ToTarget(sweep), /*times=*/true, std::move(times), false), sweep);
    }
    html += "</div>\n" + Legend(metric_panel, sweep);
  }
  return html + Table(details, sweep);
}

std::vector<std::string> SweepLines(const v1::StudyDetails& details, const Sweep& sweep) {
  return Columns(Rows(details, sweep));
}

}  // namespace espalier::report
