#include "tuner/cli/views/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"

namespace espalier {
namespace {

constexpr std::size_t kMinParameterWidth = 14;
constexpr std::size_t kMaxHeadingWidth = 16;  // a metric's name may be long
constexpr std::size_t kColumnGap = 2;

std::int64_t CountIn(const v1::Study& study, v1::TrialState state) {
  const auto found = study.trials_by_state().find(StateName(state));
  return found == study.trials_by_state().end() ? 0 : found->second;
}

std::int64_t EndedTrials(const v1::Study& study) {
  return CountIn(study, v1::TRIAL_COMPLETE) + CountIn(study, v1::TRIAL_PRUNED) +
         CountIn(study, v1::TRIAL_FAIL);
}

// Clones are beside those of which it has a number.
std::int64_t MostTrials(const v1::Study& study) { return study.max_trials() + study.clones(); }

// Share of the study that is done, by whichever limit is nearer; negative: it has none.
double ShareDone(const v1::Study& study) {
  double share = -1;
  if (study.max_trials() > 0) {
    share = static_cast<double>(EndedTrials(study)) / static_cast<double>(MostTrials(study));
  }
  if (study.time_limit_s() > 0) share = std::max(share, study.elapsed_s() / study.time_limit_s());
  if (study.state() == v1::STUDY_COMPLETE) share = 1;
  return std::min(share, 1.0);
}

std::string ProgressBar(double share, std::size_t width) {
  if (share < 0) return {};
  const auto filled =
      static_cast<std::size_t>(std::floor(share * static_cast<double>(width) + 1e-9));
  std::string bar = "[";
  for (std::size_t i = 0; i < width; ++i) bar += i < filled ? '#' : '-';
  return bar + fmt::format("] {:3.0f}%", std::floor(share * 100 + 1e-9));
}

struct Column {
  std::string heading;
  std::size_t width;  // at least; of the parameters at most what is left
  int keep;           // columns with the lowest go first when it is narrow
  bool right;
  std::function<std::string(const v1::Trial&)> text;
  bool may_be_cut = false;              // the parameters
  std::vector<std::string> cells = {};  // of the trials that are shown
};

// The slots of a trial; for a moment after a resize, from what to what.
std::string SlotsText(const v1::StudyDetails& details, const v1::Trial& trial, double now) {
  for (int i = details.decisions_size() - 1; i >= 0; --i) {
    const v1::Decision& decision = details.decisions(i);
    if (decision.at() < now - kResizeShown_s) break;
    if (decision.trial_number() != trial.number()) continue;
    if (decision.kind() == "grow" || decision.kind() == "shrink") {
      return fmt::format("{}→{}", decision.from_slots(), decision.to_slots());
    }
    break;
  }
  if (trial.pinned_slots() > 0 && trial.slots() != trial.pinned_slots() &&
      trial.state() == v1::TRIAL_RUNNING) {
    return fmt::format("{} of {} pinned", trial.slots(), trial.pinned_slots());
  }
  if (trial.slots() == 0) return "";
  return fmt::format("{}{}", trial.slots(), trial.pinned_slots() > 0 ? " pinned" : "");
}

std::string Known(double value) { return value > 0 ? FormatValue(value) : ""; }

std::vector<Column> ColumnsOfAnyStudy(const v1::StudyDetails& details, double now) {
  const std::string metric = details.study().metric().empty() ? "" : MetricNames(details.study());
  return {
      {.heading = "trial",
       .width = 5,
       .keep = 100,
       .right = true,
       .text = [](const v1::Trial& t) { return std::to_string(t.number()); }},
      {.heading = "state",
       .width = 8,
       .keep = 90,
       .right = false,
       .text = [](const v1::Trial& t) { return StateName(t.state()); }},
      {.heading = "parameters",
       .width = 0,
       .keep = 50,
       .right = false,
       .text = [](const v1::Trial& t) { return DisplayParameters(t); },
       .may_be_cut = true},
      {.heading = metric.empty() ? "metric" : metric,
       .width = 9,
       .keep = 95,
       .right = true,
       .text = ValuesText},
      {.heading = "step",
       .width = 6,
       .keep = 80,
       .right = true,
       .text = [](const v1::Trial& t) { return t.step() > 0 ? std::to_string(t.step()) : ""; }},
      {.heading = "slots",
       .width = 5,
       .keep = 85,
       .right = true,
       .text = [&details, now](const v1::Trial& t) { return SlotsText(details, t, now); }},
      {.heading = "batch",
       .width = 6,
       .keep = 30,
       .right = true,
       .text =
           [](const v1::Trial& t) {
             return t.batch_size() > 0 ? std::to_string(t.batch_size()) : "";
           }},
      {.heading = "goodput",
       .width = 8,
       .keep = 20,
       .right = true,
       .text = [](const v1::Trial& t) { return HasEnded(t.state()) ? "" : Known(t.goodput()); }},
      {.heading = "promise",
       .width = 7,
       .keep = 40,
       .right = true,
       .text =
           [](const v1::Trial& t) {
             return HasEnded(t.state()) ? "" : fmt::format("{:.2f}", t.promise());
           }},
  };
}

// Where any trial is a clone, also of which one, next to the trial's own number.
std::vector<Column> AllColumns(const v1::StudyDetails& details, double now) {
  std::vector<Column> columns = ColumnsOfAnyStudy(details, now);
  if (!std::ranges::any_of(details.trials(), &v1::Trial::has_lineage)) return columns;
  const auto parent = [](const v1::Trial& trial) {
    return trial.has_lineage() ? std::to_string(trial.lineage().parent()) : "";
  };
  columns.insert(
      columns.begin() + 1,
      Column{.heading = "clone of", .width = 8, .keep = 35, .right = true, .text = parent});
  return columns;
}

// Fills the columns with the trials that are shown, and makes them as wide as their texts. Columns
// without a text are left out, unless no trial is shown.
std::vector<Column> FillColumns(std::vector<Column> columns,
                                std::span<const v1::Trial* const> trials) {
  for (Column& column : columns) {
    std::size_t widest = 0;
    for (const v1::Trial* trial : trials) {
      widest = std::max(widest, DisplayWidth(column.cells.emplace_back(column.text(*trial))));
    }
    const std::size_t heading = std::min(DisplayWidth(column.heading), kMaxHeadingWidth);
    column.width = widest > 0 || trials.empty() ? std::max({column.width, heading, widest}) : 0;
  }
  std::erase_if(columns, [](const Column& column) { return column.width == 0; });
  return columns;
}

// Of all columns side by side, if the parameters have at most this many columns of the terminal.
std::size_t WidthWith(std::size_t parameters, const std::vector<Column>& columns) {
  std::size_t sum = 0;
  for (const Column& column : columns) {
    sum += kColumnGap + (column.may_be_cut ? std::min(column.width, parameters) : column.width);
  }
  return sum < kColumnGap ? 0 : sum - kColumnGap;
}

// Leaves out columns until the others have room, and gives the parameters at most what is left. What
// matters less than the parameters goes before they are cut; the rest, where little would be left.
std::vector<Column> FitColumns(std::vector<Column> columns, std::size_t width) {
  const auto before = [](const Column& a, const Column& b) {
    return a.may_be_cut != b.may_be_cut ? b.may_be_cut : a.keep < b.keep;
  };
  while (columns.size() > 3) {
    const auto least = std::min_element(columns.begin(), columns.end(), before);
    const bool matters_less = std::any_of(columns.begin(), columns.end(), [&](const Column& c) {
      return c.may_be_cut && least->keep < c.keep;
    });
    if (WidthWith(matters_less ? width : kMinParameterWidth, columns) <= width) break;
    columns.erase(least);
  }
  const std::size_t others = WidthWith(0, columns);
  for (Column& column : columns) {
    if (!column.may_be_cut) continue;
    column.width = std::min(column.width, width > others ? width - others : 1);
  }
  return columns;
}

std::string JoinCells(const std::vector<Column>& columns,
                      const std::function<std::string(const Column&)>& cell) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line.append(kColumnGap, ' ');
    const std::string text = cell(columns[i]);
    line += columns[i].right ? FitRight(text, columns[i].width) : FitLeft(text, columns[i].width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

LineStyle StyleOf(const v1::Study& study, const v1::Trial& trial) {
  if (study.has_best_trial() && study.best_trial() == trial.number()) return LineStyle::kBest;
  if (trial.state() == v1::TRIAL_FAIL) return LineStyle::kBad;
  if (trial.state() == v1::TRIAL_RUNNING) return LineStyle::kRunning;
  if (trial.state() == v1::TRIAL_COMPLETE) return LineStyle::kPlain;
  return LineStyle::kDim;
}

// Running, then ended ones and paused by value, then waiting.
std::vector<const v1::Trial*> InTableOrder(const v1::StudyDetails& details) {
  std::vector<const v1::Trial*> trials = BestFirst(details);
  const auto rank = [](const v1::Trial* trial) {
    if (trial->state() == v1::TRIAL_RUNNING) return 0;
    return trial->state() == v1::TRIAL_WAITING ? 2 : 1;
  };
  std::stable_sort(trials.begin(), trials.end(),
                   [&](const v1::Trial* a, const v1::Trial* b) { return rank(a) < rank(b); });
  return trials;
}

std::string TitleLine(const v1::StudyDetails& details) {
  const v1::Study& study = details.study();
  std::string line = fmt::format("{}  {}  {}", study.name(), StateName(study.state()),
                                 FormatDuration(study.elapsed_s()));
  if (study.state() == v1::STUDY_RUNNING && study.remaining_s() >= 0) {
    line += fmt::format("  about {} left", FormatDuration(study.remaining_s()));
  }
  if (study.cost_limit() > 0) {
    line += fmt::format("  spent {} of {}", FormatValue(study.spent()),
                        FormatValue(study.cost_limit()));
  } else if (study.spent() > 0) {
    line += fmt::format("  spent {}", FormatValue(study.spent()));
  }
  line += fmt::format("  slots {}/{}", details.pool().slots_held(), details.pool().slots());
  if (study.state() != v1::STUDY_RUNNING && !study.reason().empty()) line += "  " + study.reason();
  return line;
}

std::vector<TableLine> Head(const v1::StudyDetails& details, std::size_t width) {
  std::vector<TableLine> lines;
  lines.push_back({Cut(TitleLine(details), width), LineStyle::kTitle});
  const std::string bar = ProgressBar(ShareDone(details.study()), width < 80 ? 16 : 30);
  const std::string counts = TrialCounts(details.study());
  lines.push_back({Cut(bar.empty() ? counts : bar + "  " + counts, width), LineStyle::kPlain});
  lines.push_back({Cut(BestSoFar(details), width), LineStyle::kBest});
  if (const std::string constraints = ConstraintsText(details); !constraints.empty()) {
    lines.push_back({Cut("constraints: " + constraints, width), LineStyle::kPlain});
  }
  if (details.study().notice().empty()) return lines;
  for (const std::string& line : Wrapped("note: " + details.study().notice(), width)) {
    lines.push_back({Cut(line, width), LineStyle::kPlain});
  }
  return lines;
}

// The last line: how many trials are not shown, by state.
std::string HiddenLine(const std::vector<const v1::Trial*>& trials, std::size_t shown) {
  std::map<std::string, int> by_state;
  for (std::size_t i = shown; i < trials.size(); ++i) ++by_state[StateName(trials[i]->state())];
  std::string line = fmt::format("... {} more:", trials.size() - shown);
  for (const auto& [state, count] : by_state) line += fmt::format(" {} {}", count, state);
  return line;
}

// As many of its trials as a line shows to advantage.
std::string FrontSoFar(const v1::StudyDetails& details) {
  constexpr std::size_t kMost = 8;
  const std::vector<const v1::Trial*> front = ParetoFront(details);
  if (front.empty()) {
    return fmt::format("Pareto front: {} yet", WhyNoneIsBest(details, "no trial is complete"));
  }
  std::string line = fmt::format("Pareto front ({}): {}: ", MetricNames(details.study()),
                                 Count(std::ssize(front), "trial"));
  for (std::size_t i = 0; i < std::min(front.size(), kMost); ++i) {
    line += fmt::format("{}{} ({})", i == 0 ? "" : ", ", front[i]->number(), ValuesText(*front[i]));
  }
  return front.size() > kMost ? line + ", ..." : line;
}

}  // namespace

std::string TrialCounts(const v1::Study& study) {
  std::string line = std::to_string(EndedTrials(study));
  if (study.max_trials() > 0) line += fmt::format("/{}", MostTrials(study));
  line += " trials done";
  const std::pair<v1::TrialState, const char*> kinds[] = {
      {v1::TRIAL_RUNNING, "running"}, {v1::TRIAL_WAITING, "waiting"},
      {v1::TRIAL_PAUSED, "paused"},   {v1::TRIAL_COMPLETE, "complete"},
      {v1::TRIAL_PRUNED, "pruned"},   {v1::TRIAL_FAIL, "failed"}};
  const char* separator = ": ";
  for (const auto& [state, word] : kinds) {
    if (const std::int64_t n = CountIn(study, state); n > 0) {
      line += fmt::format("{}{} {}", separator, n, word);
      separator = ", ";
    }
  }
  return line;
}

std::string BestSoFar(const v1::StudyDetails& details) {
  const v1::Study& study = details.study();
  if (study.directions_size() > 1) return FrontSoFar(details);
  std::string line = fmt::format("best ({}) {}", BestIs(study), MetricName(study));
  if (!study.has_best_trial()) {
    return fmt::format("{}: {} yet", line, WhyNoneIsBest(details, "no value"));
  }
  line += fmt::format(" {}, trial {}", FormatValue(study.best_value()), study.best_trial());
  if (const v1::Trial* trial = FindTrial(details, study.best_trial())) {
    line += ": " + DisplayParameters(*trial);
  }
  return line;
}

std::vector<TableLine> RenderTable(const v1::StudyDetails& details, const TableOptions& options) {
  const std::size_t width = std::max(options.width, kMinTableWidth);
  std::vector<TableLine> lines = Head(details, width);
  const std::vector<const v1::Trial*> trials = InTableOrder(details);
  const std::size_t above = lines.size() + 1;
  const std::size_t room = options.height > above ? options.height - above : 0;
  std::size_t shown = trials.size();
  if (shown > room) shown = room > 0 ? room - 1 : 0;
  const std::vector<Column> columns = FitColumns(
      FillColumns(AllColumns(details, options.now), std::span(trials).first(shown)), width);

  lines.push_back({JoinCells(columns, [](const Column& c) { return c.heading; }), LineStyle::kDim});
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back({JoinCells(columns, [i](const Column& c) { return c.cells[i]; }),
                     StyleOf(details.study(), *trials[i])});
  }
  if (shown < trials.size() && room > 0) {
    lines.push_back({Cut(HiddenLine(trials, shown), width), LineStyle::kDim});
  }
  if (lines.size() > options.height) lines.resize(options.height);
  return lines;
}

}  // namespace espalier
