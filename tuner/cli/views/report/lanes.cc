#include "tuner/cli/views/report/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tuner/cli/views/record.h"
#include "tuner/cli/views/report/axis.h"
#include "tuner/cli/views/report/markup.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier::report {
namespace {

constexpr double kLanesWidth = 960;
constexpr double kLanesLeft = 96;
constexpr double kLanesRight = 12;
constexpr double kLanesTop = 8;
constexpr double kLanesAxis = 34;
constexpr double kDigitWidth = 6.6;

constexpr double kMarkRoom = 14;  // a resize's mark, inside the slot that was gained or lost

// A stretch of one lane held by one trial without a break.
struct Bar {
  double from;
  double to;
  bool gained;  // by a resize
};
using SlotKey = std::pair<std::int64_t, int>;

class LanesPicture {
 public:
  LanesPicture(const v1::StudyDetails& details, double now, const TrialColors& colors)
      : details_(details),
        now_(now),
        colors_(colors),
        lanes_(LanesOf(details)),
        use_(UtilisationOf(details, now)) {
    lane_height_ = lanes_.size() <= 16 ? 24 : lanes_.size() <= 48 ? 16 : 9;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      row_[{lanes_[i].node_id, lanes_[i].index}] = i;
    }
  }

  std::string Draw() {
    if (lanes_.empty() || use_.to <= use_.from) return "<p>No trial has held a slot yet.</p>\n";
    const double height =
        kLanesTop + lane_height_ * static_cast<double>(lanes_.size()) + kLanesAxis;
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Slots held over time\">\n",
        kLanesWidth, Px(height));
    svg += Lanes() + Axis();
    for (const v1::Trial& trial : details_.trials()) svg += Bars(trial);
    for (const v1::Trial& trial : details_.trials()) svg += Marks(trial);
    return svg + "</svg>\n";
  }

 private:
  double X(double at) const {
    return kLanesLeft +
           (at - use_.from) / (use_.to - use_.from) * (kLanesWidth - kLanesLeft - kLanesRight);
  }
  double Y(std::size_t row) const { return kLanesTop + lane_height_ * static_cast<double>(row); }
  double EndOf(const v1::SlotSpan& span) const { return span.to() > 0 ? span.to() : now_; }
  std::size_t Row(const v1::Slot& slot) const { return row_.at({slot.node_id(), slot.index()}); }

  std::string Lanes() const {
    std::string svg;
    const std::size_t every = lane_height_ >= 12 ? 1 : 4;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      svg += fmt::format("<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                         kLanesLeft, Px(Y(i) + 1), kLanesWidth - kLanesLeft - kLanesRight,
                         Px(lane_height_ - 2));
      if (i % every != 0) continue;
      svg += fmt::format(
          "<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}"
          "<title>{}</title></text>\n",
          kLanesLeft - 8, Px(Y(i) + lane_height_ / 2 + 4), Escape(Cut(lanes_[i].name, 13)),
          Escape(lanes_[i].name));
    }
    return svg;
  }

  std::string Axis() const {
    const double bottom = Y(lanes_.size());
    std::string svg;
    const std::vector<double> ticks = TimeTicks(0, use_.to - use_.from, 8);
    const std::vector<std::string> labels = TimeLabels(ticks);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      const double x = X(use_.from + ticks[i]);
      svg += fmt::format("<line class=\"tick\" x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\"/>\n",
                         Px(x), Px(bottom), Px(bottom + 5));
      svg +=
          fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                      Px(x), Px(bottom + 18), labels[i]);
    }
    return svg;
  }

  // Spans end whenever any slot comes or goes; a slot that stays is one bar.
  std::map<std::size_t, std::vector<Bar>> BarsByRow(const v1::Trial& trial) const {
    std::map<std::size_t, std::vector<Bar>> rows;
    for (int i = 0; i < trial.spans_size(); ++i) {
      const v1::SlotSpan& span = trial.spans(i);
      const bool grew =
          ResizedInto(trial, i) && span.slots_size() > trial.spans(i - 1).slots_size();
      for (const v1::Slot& slot : span.slots()) {
        std::vector<Bar>& bars = rows[Row(slot)];
        if (!bars.empty() && span.from() - bars.back().to < kSameMoment_s) {
          bars.back().to = EndOf(span);
        } else {
          bars.push_back({span.from(), EndOf(span), grew});
        }
      }
    }
    return rows;
  }

  std::string Bars(const v1::Trial& trial) const {
    std::string svg;
    const std::string number = std::to_string(trial.number());
    const Color color = colors_.Of(trial.number());
    for (const auto& [row, bars] : BarsByRow(trial)) {
      for (const Bar& bar : bars) {
        const double width = std::max(1.0, X(bar.to) - X(bar.from));
        svg += fmt::format(
            "<rect class=\"bar{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" "
            "fill=\"{}\"><title>trial {}, {}\n{}\n{} from {}, slot {}</title></rect>\n",
            trial.state() == v1::TRIAL_PRUNED ? " faded" : "", Px(X(bar.from)), Px(Y(row) + 1.5),
            Px(width), Px(lane_height_ - 3), color.fill, number, StateName(trial.state()),
            Escape(DisplayParameters(trial)), FormatDuration(bar.to - bar.from),
            FormatDuration(bar.from - use_.from), Escape(lanes_[row].name));
        const double indent = bar.gained ? kMarkRoom : 4;
        if (width > kDigitWidth * static_cast<double>(number.size()) + indent + 2 &&
            lane_height_ >= 12) {
          svg += fmt::format("<text class=\"number\" x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n",
                             Px(X(bar.from) + indent), Px(Y(row) + lane_height_ / 2 + 4), color.ink,
                             number);
        }
      }
    }
    return svg;
  }

  std::size_t TopRow(const v1::SlotSpan& span) const {
    std::size_t top = lanes_.size();
    for (const v1::Slot& slot : span.slots()) top = std::min(top, Row(slot));
    return top;
  }

  std::string Triangle(double x, std::size_t row, bool up, const std::string& title) const {
    const double middle = Y(row) + lane_height_ / 2;
    const double d = up ? -4.5 : 4.5;
    return fmt::format(
        "<path class=\"resize\" d=\"M{} {}L{} {}L{} {}Z\"><title>{}</title></path>\n", Px(x - 5),
        Px(middle - d * 0.8), Px(x + 5), Px(middle - d * 0.8), Px(x), Px(middle + d),
        Escape(title));
  }

  std::string EndMark(const v1::Trial& trial) const {
    const bool failed = trial.state() == v1::TRIAL_FAIL;
    if (trial.state() != v1::TRIAL_PRUNED && !failed) return {};
    const v1::SlotSpan& last = trial.spans(trial.spans_size() - 1);
    if (last.slots().empty()) return {};
    const double x = std::max(X(EndOf(last)) - 5, kLanesLeft + 5);
    const double y = Y(TopRow(last)) + lane_height_ / 2;
    return fmt::format(
        "<path class=\"{}\" d=\"M{} {}L{} {}M{} {}L{} {}\"><title>trial {} {}: {}</title></path>\n",
        failed ? "failed" : "killed", Px(x - 4), Px(y - 4), Px(x + 4), Px(y + 4), Px(x - 4),
        Px(y + 4), Px(x + 4), Px(y - 4), trial.number(), StateName(trial.state()),
        Escape(trial.reason()));
  }

  // Rows of the slots that one span has and the other lacks.
  std::vector<std::size_t> RowsOnlyIn(const v1::SlotSpan& span, const v1::SlotSpan& other) const {
    std::set<std::size_t> rows;
    for (const v1::Slot& slot : span.slots()) rows.insert(Row(slot));
    for (const v1::Slot& slot : other.slots()) rows.erase(Row(slot));
    return {rows.begin(), rows.end()};
  }

  std::string Marks(const v1::Trial& trial) const {
    if (trial.spans().empty()) return {};
    std::string svg;
    for (int i = 1; i < trial.spans_size(); ++i) {
      const v1::SlotSpan& before = trial.spans(i - 1);
      const v1::SlotSpan& after = trial.spans(i);
      if (!ResizedInto(trial, i)) continue;
      const bool up = after.slots_size() > before.slots_size();
      const std::string title =
          fmt::format("trial {}: {} to {} slots at {}", trial.number(), before.slots_size(),
                      after.slots_size(), FormatDuration(after.from() - use_.from));
      const double x = X(after.from()) + (up ? kMarkRoom / 2 : -kMarkRoom / 2);
      for (const std::size_t row : up ? RowsOnlyIn(after, before) : RowsOnlyIn(before, after)) {
        svg += Triangle(x, row, up, title);
      }
    }
    return svg + EndMark(trial);
  }

  const v1::StudyDetails& details_;
  double now_;
  const TrialColors& colors_;
  std::vector<Lane> lanes_;
  Utilisation use_;
  double lane_height_;
  std::map<SlotKey, std::size_t> row_;
};

}  // namespace

std::string SlotsPicture(const v1::StudyDetails& details, double now, const TrialColors& colors) {
  std::string html = LanesPicture(details, now, colors).Draw();
  return html +
         "<p class=\"legend\">Number and colour: trial. "
         "<svg class=\"mark\" viewBox=\"0 0 14 14\"><path class=\"resize\" d=\"M2 11L12 11L7 3Z\"/>"
         "</svg> grew &#160; "
         "<svg class=\"mark\" viewBox=\"0 0 14 14\"><path class=\"resize\" d=\"M2 3L12 3L7 11Z\"/>"
         "</svg> shrank &#160; "
         "<svg class=\"mark\" viewBox=\"0 0 14 14\"><path class=\"killed\" "
         "d=\"M3 3L11 11M3 11L11 3\"/></svg> pruned (and paler) &#160; "
         "<svg class=\"mark\" viewBox=\"0 0 14 14\"><path class=\"failed\" "
         "d=\"M3 3L11 11M3 11L11 3\"/></svg> failed. Point at a bar for more.</p>\n";
}

}  // namespace espalier::report
