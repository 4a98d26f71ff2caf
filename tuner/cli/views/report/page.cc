#include "tuner/cli/views/report/page.h"

#include <fmt/format.h>

#include "tuner/cli/views/promise_record.h"
#include "tuner/cli/views/record.h"
#include "tuner/cli/views/report/curves.h"
#include "tuner/cli/views/report/lanes.h"
#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/report/reliability.h"
#include "tuner/cli/views/report/sweep.h"
#include "tuner/cli/views/report/tables.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/table.h"
#include "tuner/cli/views/text.h"
#include "tuner/study_file/study_file.h"

namespace espalier {
namespace {

using report::Escape;

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--ink:#1c2024;--soft:#5f6b76;--ground:#fff;--panel:#f4f6f8;
--line:#d9dee3;--accent:#0072b2;--best:#fff6dd;--bad:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9aa6b2;--ground:#14181c;
--panel:#1d2329;--line:#343c44;--accent:#56b4e9;--best:#3a3116;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 16px 64px;max-width:1040px;background:var(--ground);
color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:18px;margin:36px 0 10px}
p{margin:6px 0}.soft,.legend{color:var(--soft);font-size:13px}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:18px 0 6px}
.tile{flex:1 1 150px;background:var(--panel);border-radius:8px;padding:10px 14px}
.tile b{display:block;font-size:21px;font-weight:650;line-height:1.3;overflow-wrap:anywhere}
.tile span{color:var(--soft);font-size:13px}
.parameters{display:flex;flex-wrap:wrap;gap:6px;margin:8px 0}
.parameters code{background:var(--panel);border-radius:4px;padding:2px 8px}
code,pre{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,monospace}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:6px 0;max-height:220px;overflow:auto}
svg{display:block;width:100%;height:auto;font:11px system-ui,sans-serif}
svg.mark{display:inline-block;width:14px;height:14px;vertical-align:-2px}
.lane{fill:var(--panel)}.tick,.grid{stroke:var(--line);stroke-width:1}
.label{fill:var(--soft)}.number{font-weight:650;pointer-events:none}
.bar{stroke:var(--ground);stroke-width:.6}.bar:hover{stroke:var(--ink);stroke-width:1.5}
.faded{opacity:.72}
.resize{fill:var(--ground);stroke:var(--ink);stroke-width:1.2;stroke-linejoin:round}
.killed,.failed{fill:none;stroke:var(--ink);stroke-width:2.2;stroke-linecap:round}
.failed{stroke:var(--bad);stroke-width:3}
.curve path{fill:none;stroke-width:1.4;stroke-linejoin:round;opacity:.75}
.curve.dashed path{stroke-dasharray:5 4}.curve.best path{stroke-width:3.2;opacity:1}
.curve:hover path{stroke-width:3;opacity:1}.bestlabel{fill:var(--ink)}
.pair{display:flex;flex-wrap:wrap;gap:16px}.pair svg{flex:1 1 420px;width:auto}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}
th{text-align:left;color:var(--soft);font-weight:600;border-bottom:1.5px solid var(--line);
padding:5px 10px 5px 0;vertical-align:bottom}
td{border-bottom:1px solid var(--line);padding:5px 10px 5px 0;vertical-align:top}
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}
td.why{min-width:200px;overflow-wrap:anywhere}
td.p{min-width:260px;overflow-wrap:anywhere}
tr.best td{background:var(--best)}
.chip{display:inline-block;min-width:26px;padding:0 6px;border-radius:4px;text-align:center;
font-weight:650}
summary{cursor:pointer;color:var(--soft)}
)css";

std::string Tile(const std::string& figure, const std::string& caption) {
  return "<div class=\"tile\"><b>" + Escape(figure) + "</b><span>" + Escape(caption) +
         "</span></div>\n";
}

std::string Percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string Summary(const v1::StudyDetails& details, double now) {
  const v1::Study& study = details.study();
  const Utilisation use = UtilisationOf(details, now);
  const auto lanes = static_cast<std::int64_t>(LanesOf(details).size());
  ResizeCounts resizes;
  double slot_seconds = 0;
  for (const v1::Trial& trial : details.trials()) {
    resizes.grown += CountResizes(trial).grown;
    resizes.shrunk += CountResizes(trial).shrunk;
    slot_seconds += SlotSeconds(trial, now);
  }
  std::string html = "<div class=\"tiles\">\n";
  html += Tile(study.has_best_trial() ? FormatValue(study.best_value()) : "none",
               study.has_best_trial()
                   ? fmt::format("best {}, trial {}", study.metric(), study.best_trial())
                   : "no trial has a value yet");
  html += Tile(std::to_string(details.trials_size()), TrialCounts(study));
  html += Tile(FormatDuration(study.elapsed_s()), "running time");
  html += Tile(Percent(use.overall),
               fmt::format("of the time of {} held ({} until the last trial started), {:.0f} "
                           "slot-seconds",
                           Count(lanes, "slot"), Percent(use.until_last_start), slot_seconds));
  html += Tile(fmt::format("{} / {}", resizes.grown, resizes.shrunk), "grown / shrunk in place");
  return html + "</div>\n";
}

std::string BestTrialLine(const v1::StudyDetails& details) {
  const v1::Study& study = details.study();
  const v1::Trial* best = study.has_best_trial() ? FindTrial(details, study.best_trial()) : nullptr;
  if (best == nullptr) return {};
  std::string html = "<p class=\"parameters\">";
  for (const v1::Parameter& parameter : best->parameters()) {
    html += "<code>" + Escape(parameter.name() + " = " + DisplayParameter(parameter)) + "</code>";
  }
  html += "</p>\n";
  if (!best->checkpoint().empty()) {
    html += "<p class=\"soft\">Checkpoint: <code>" + Escape(best->checkpoint()) + "</code></p>\n";
  }
  return html;
}

std::string TitleOf(const std::string& study) { return "<title>" + Escape(study) + "</title>\n"; }

}  // namespace

bool IsReportOn(const std::string& study, std::string_view page) {
  return page.find(TitleOf(study)) != std::string_view::npos;
}

std::string ReportPage(const v1::StudyDetails& details, double now, std::optional<double> target) {
  const v1::Study& study = details.study();
  const report::TrialColors colors(details);
  const std::string sweep = report::SweepSection(details, report::SweepOf(details, target, now));
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += TitleOf(study.name());
  html += std::string("<style>") + kStyle + "</style>\n</head>\n<body>\n";
  html += "<h1>" + Escape(study.name()) + "</h1>\n<p class=\"soft\">" +
          Escape(StateName(study.state())) +
          (study.reason().empty() ? "" : ": " + Escape(study.reason())) + "; " +
          (study.maximize() ? "maximizes " : "minimizes ") + Escape(study.metric()) + "</p>\n";
  if (!study.notice().empty()) html += "<p>Note: " + Escape(study.notice()) + "</p>\n";
  html += Summary(details, now) + BestTrialLine(details);
  html += "<h2>Who held which slot</h2>\n" + report::SlotsPicture(details, now, colors);
  html += "<h2>" + Escape(study.metric()) + " over steps</h2>\n" +
          report::CurvesPicture(details, colors);
  html += "<h2>Trials, the best first</h2>\n" + report::TrialsTable(details, now, colors);
  if (!sweep.empty()) html += "<h2>By scaling rule and batch size</h2>\n" + sweep;
  html += report::ReliabilitySection(PromiseReliability(details));
  html += "<h2>Decisions</h2>\n" + report::DecisionsTable(details);
  html += "<details><summary>Study file</summary><pre>" +
          Escape(MaskEnvironment(study.study_json())) + "</pre></details>\n";
  return html + "</body>\n</html>\n";
}

}  // namespace espalier
