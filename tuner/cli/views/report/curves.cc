#include "tuner/cli/views/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tuner/cli/views/report/axis.h"
#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

constexpr double kCurvesWidth = 960;
constexpr double kCurvesHeight = 360;
constexpr double kCurvesLeft = 64;
constexpr double kCurvesRight = 44;
constexpr double kCurvesTop = 12;
constexpr double kCurvesBottom = 40;
constexpr double kWhole = 1e-6;  // steps are whole numbers

struct CurvesFrame {
  double first_step = 0;
  double last_step = 1;
  double low = 0;
  double high = 1;
  int outside = 0;  // values that the frame leaves out, and those that are no numbers

  double X(double step) const {
    return kCurvesLeft + (step - first_step) / (last_step - first_step) *
                             (kCurvesWidth - kCurvesLeft - kCurvesRight);
  }
  double Y(double value) const {
    return kCurvesHeight - kCurvesBottom -
           (value - low) / (high - low) * (kCurvesHeight - kCurvesTop - kCurvesBottom);
  }
};

CurvesFrame MakeFrame(const v1::Study& study, const std::vector<const v1::Trial*>& trials) {
  CurvesFrame frame;
  std::vector<double> values;
  frame.first_step = 1e300;
  frame.last_step = -1e300;
  for (const v1::Trial* trial : trials) {
    for (const v1::IntermediateValue& value : trial->values()) {
      frame.first_step = std::min(frame.first_step, static_cast<double>(value.step()));
      frame.last_step = std::max(frame.last_step, static_cast<double>(value.step()));
      if (std::isfinite(value.value()))
        values.push_back(value.value());
      else
        ++frame.outside;
    }
  }
  if (values.empty()) return frame;
  const Range range = FencedRange(values, study.maximize());
  frame.low = range.low;
  frame.high = range.high;
  for (const double value : values) frame.outside += value < frame.low || value > frame.high;
  if (frame.last_step <= frame.first_step) {
    frame.first_step -= 0.5;
    frame.last_step += 0.5;
  }
  return frame;
}

std::string Axes(const v1::Study& study, const CurvesFrame& frame) {
  std::string svg;
  const std::vector<double> values = AxisTicks(frame.low, frame.high, 6);
  const std::vector<std::string> labels = ValueLabels(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    svg += GridLine(kCurvesLeft, kCurvesWidth - kCurvesRight, frame.Y(values[i]), labels[i]);
  }
  for (const double tick : AxisTicks(frame.first_step, frame.last_step, 10)) {
    if (std::abs(tick - std::round(tick)) > kWhole) continue;
    svg += fmt::format(
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n",
        Px(frame.X(tick)), kCurvesHeight - kCurvesBottom + 17, tick);
  }
  svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">step</text>\n",
                     kCurvesWidth - kCurvesRight, kCurvesHeight - 6);
  svg += fmt::format(
      "<text class=\"label\" x=\"14\" y=\"{0}\" text-anchor=\"middle\" "
      "transform=\"rotate(-90 14 {0})\">{1}</text>\n",
      kCurvesHeight / 2, Escape(study.metric()));
  return svg;
}

struct Path {
  std::string line;  // gaps where a value is no number
  double last_x = 0;
  double last_y = 0;
  int points = 0;
};

Path MakePath(const v1::Trial& trial, const CurvesFrame& frame) {
  Path path;
  const int every = 1 + trial.values_size() / kMaxPointsOfCurve;
  bool pen_down = false;
  for (int i = 0; i < trial.values_size(); ++i) {
    const bool last = i + 1 == trial.values_size();
    if (i % every != 0 && !last) continue;
    const v1::IntermediateValue& value = trial.values(i);
    if (!std::isfinite(value.value())) {
      pen_down = false;
      continue;
    }
    path.last_x = frame.X(static_cast<double>(value.step()));
    // Far outside the clip SVG renderers lose precision; the line's direction is kept well enough.
    path.last_y = std::clamp(frame.Y(value.value()), -10 * kCurvesHeight, 10 * kCurvesHeight);
    path.line += fmt::format("{}{} {}", pen_down ? "L" : "M", Px(path.last_x), Px(path.last_y));
    pen_down = true;
    ++path.points;
  }
  return path;
}

std::string Curve(const v1::Study& study, const v1::Trial& trial, const CurvesFrame& frame,
                  const std::string& color) {
  const Path path = MakePath(trial, frame);
  if (path.points == 0) return {};
  const bool best = study.has_best_trial() && study.best_trial() == trial.number();
  const bool dashed = trial.state() == v1::TRIAL_PRUNED;
  const std::string title =
      fmt::format("<title>trial {}, {}, {}\n{}</title>", trial.number(), StateName(trial.state()),
                  trial.has_value() ? FormatValue(trial.value()) : "no value",
                  Escape(DisplayParameters(trial)));
  const bool inside = path.last_y >= kCurvesTop && path.last_y <= kCurvesHeight - kCurvesBottom;
  std::string svg =
      fmt::format("<g class=\"curve{}{}\">{}<path d=\"{}\" stroke=\"{}\"/>", best ? " best" : "",
                  dashed ? " dashed" : "", title, path.line, color);
  if (inside) {
    svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>", Px(path.last_x),
                       Px(path.last_y), best ? 4 : 2.5, color);
  }
  if (best && inside) {
    svg += fmt::format("<text class=\"number bestlabel\" x=\"{}\" y=\"{}\">{}</text>",
                       Px(path.last_x + 7), Px(path.last_y + 4), trial.number());
  }
  return svg + "</g>\n";
}

// The trials whose colours are theirs alone, with their values.
std::string ColorsLegend(const std::vector<const v1::Trial*>& trials, const TrialColors& colors) {
  std::string html;
  for (const v1::Trial* trial : trials) {
    if (!colors.IsOwn(trial->number())) continue;
    const Color color = colors.Of(trial->number());
    html += fmt::format(
        "<span class=\"chip\" style=\"background:{};color:{}\">{}</span> {} &#160; ", color.fill,
        color.ink, trial->number(), trial->has_value() ? FormatValue(trial->value()) : "");
  }
  return html;
}

}  // namespace

std::string CurvesPicture(const v1::StudyDetails& details, const TrialColors& colors) {
  std::vector<const v1::Trial*> trials;
  for (const v1::Trial* trial : BestFirst(details)) {
    if (!trial->values().empty()) trials.push_back(trial);
  }
  if (trials.empty()) return "<p>No trial has reported a value yet.</p>\n";
  const std::size_t total = trials.size();
  trials.resize(std::min(total, kMaxCurves));
  const CurvesFrame frame = MakeFrame(details.study(), trials);
  std::string html = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Metric over steps\">\n"
      "<clipPath id=\"frame\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\n",
      kCurvesWidth, kCurvesHeight, kCurvesLeft, kCurvesTop, kCurvesWidth - kCurvesLeft,
      kCurvesHeight - kCurvesTop - kCurvesBottom);
  html += Axes(details.study(), frame) + "<g clip-path=\"url(#frame)\">\n";
  // The best one is drawn last, over the others.
  for (auto trial = trials.rbegin(); trial != trials.rend(); ++trial) {
    html += Curve(details.study(), **trial, frame, colors.Of((*trial)->number()).fill);
  }
  html += "</g>\n</svg>\n<p class=\"legend\">" + ColorsLegend(trials, colors) +
          "Thick: the best trial. Dashed: pruned.";
  if (trials.size() < total) html += fmt::format(" The best {} of {}.", trials.size(), total);
  if (frame.outside > 0)
    html += fmt::format(" {} beyond the frame.", Count(frame.outside, "value"));
  return html + " Point at a curve for its trial.</p>\n";
}

}  // namespace espalier::report
