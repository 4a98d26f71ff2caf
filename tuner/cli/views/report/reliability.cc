#include "tuner/cli/views/report/reliability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/cli/views/report/markup.h"

namespace espalier::report {
namespace {

constexpr double kSquareWidth = 900, kSquareHeight = 260;
constexpr double kSide = 200;  // of the square that probabilities are drawn in
constexpr double kSquareLeft = 44, kSquareTop = 14;
constexpr double kSmallest = 2.5, kLargest = 11;  // radius of a bin's circle

double X(double probability) { return kSquareLeft + kSide * probability; }
double Y(double probability) { return kSquareTop + kSide * (1 - probability); }

std::string SquareFrame() {
  std::string svg;
  for (const double tick : {0.0, 0.5, 1.0}) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>"
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0f} %</text>"
        "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{:.0f} %</text>\n",
        Px(X(0)), Px(Y(tick)), Px(X(1)), Px(Y(tick)), Px(X(0) - 6), Px(Y(tick) + 4), 100 * tick,
        Px(X(tick)), Px(Y(0) + 16), 100 * tick);
  }
  svg += fmt::format("<line class=\"tick\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", Px(X(0)),
                     Px(Y(0)), Px(X(1)), Px(Y(1)));
  return svg + fmt::format(
                   "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">predicted; "
                   "upwards: came true</text>\n",
                   Px(X(0.5)), Px(kSquareHeight - 8));
}

std::string Circles(const Reliability& promise) {
  int most = 1;
  for (const ReliabilityBin& bin : promise.bins) most = std::max(most, bin.count);
  std::string svg;
  for (const ReliabilityBin& bin : promise.bins) {
    if (bin.count == 0) continue;
    const double part = std::sqrt(static_cast<double>(bin.count) / most);
    svg += fmt::format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"var(--accent)\" fill-opacity=\".75\">"
        "<title>{} promises of {:.0f} to {:.0f} %</title></circle>\n",
        Px(X(bin.predicted)), Px(Y(bin.happened)), Px(kSmallest + part * (kLargest - kSmallest)),
        bin.count, 100 * bin.low, 100 * bin.high);
  }
  return svg;
}

std::string BinRows(const Reliability& promise) {
  std::string html;
  for (const ReliabilityBin& bin : promise.bins) {
    if (bin.count == 0) continue;
    html += fmt::format(
        "<tr><td class=\"n\">{:.0f} to {:.0f} %</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{:.1f} %</td><td class=\"n\">{:.1f} %</td></tr>\n",
        100 * bin.low, 100 * bin.high, bin.count, 100 * bin.predicted, 100 * bin.happened);
  }
  return html;
}

}  // namespace

std::string ReliabilitySection(const Reliability& promise) {
  if (promise.count == 0) return {};
  std::string html = fmt::format(
      "<h2>How far promise could be trusted</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Promises against outcomes\">\n",
      kSquareWidth, kSquareHeight);
  html += SquareFrame() + Circles(promise) + "</svg>\n";
  html +=
      "<div class=\"wide\"><table>\n<thead><tr><th>promise</th><th>predictions</th>"
      "<th>predicted</th><th>came true</th></tr></thead>\n<tbody>\n" +
      BinRows(promise) + "</tbody>\n</table></div>\n";
  return html +
         fmt::format(
             "<p class=\"legend\">The chance to end among the study's best, computed again from "
             "what was known at moments of the study, and how often it came true. On the line: as "
             "predicted. Calibration error {:.3f}, Brier score {:.3f} (always predicting the mean: "
             "{:.3f}). A trial that was ended early counts as one that would not have come "
             "true.</p>\n",
             promise.expected_calibration_error, promise.brier, promise.base_brier);
}

}  // namespace espalier::report
