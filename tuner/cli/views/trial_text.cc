#include "tuner/cli/views/trial_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tuner/cli/views/record.h"
#include "tuner/cli/views/study_text.h"
#include "tuner/cli/views/text.h"
#include "tuner/messages/wire/figures_wire.h"

namespace espalier {
namespace {

// Named values, and the sections below them.
class Lines {
 public:
  void Add(const std::string& name, const std::string& value) {
    if (!value.empty()) named_.push_back({name, value});
  }
  void Known(const std::string& name, double value) {
    if (value != 0) Add(name, FormatExactly(value));
  }
  void Section(const std::string& title, const std::vector<std::vector<std::string>>& rows) {
    if (rows.size() < 2) return;
    lines_.emplace_back();
    lines_.push_back(title);
    for (const std::string& line : Columns(rows)) lines_.push_back("  " + line);
  }
  void Text(const std::string& line) { lines_.push_back(line); }
  std::vector<std::string> Take() const {
    std::vector<std::string> all = Columns(named_);
    all.insert(all.end(), lines_.begin(), lines_.end());
    return all;
  }

 private:
  std::vector<std::vector<std::string>> named_;
  std::vector<std::string> lines_;
};

std::string At(const v1::StudyDetails& details, double at) {
  return fmt::format("{:.2f}s", at - details.study().created_at());
}

std::string SlotNames(const v1::SlotSpan& span, const std::vector<Lane>& lanes) {
  std::string names;
  for (const v1::Slot& slot : span.slots()) {
    for (const Lane& lane : lanes) {
      if (lane.node_id == slot.node_id() && lane.index == slot.index()) {
        names += (names.empty() ? "" : " ") + lane.name;
      }
    }
  }
  return names;
}

// As a shell would take them.
std::string ShellWords(const google::protobuf::RepeatedPtrField<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    text += plain ? word : "'" + absl::StrReplaceAll(word, {{"'", R"('\'')"}}) + "'";
  }
  return text;
}

void AddHistory(const v1::StudyDetails& details, const v1::Trial& trial, double now, Lines& lines) {
  const std::set<std::string> figures = FigureNames(trial);
  std::vector<std::vector<std::string>> values = {{"step", "value", "at", "batch"}};
  values[0].insert(values[0].end(), figures.begin(), figures.end());
  for (const v1::IntermediateValue& value : trial.values()) {
    std::vector<std::string>& row = values.emplace_back(std::vector<std::string>{
        std::to_string(value.step()), FormatExactly(value.value()), At(details, value.at()),
        value.batch_size() > 0 ? std::to_string(value.batch_size()) : ""});
    for (const std::string& name : figures) {
      const auto figure = value.extra().find(name);
      row.push_back(figure == value.extra().end() ? "" : FormatExactly(figure->second));
    }
  }
  lines.Section("values", values);
  const std::vector<Lane> lanes = LanesOf(details);
  std::vector<std::vector<std::string>> spans = {{"from", "for", "slots"}};
  for (const v1::SlotSpan& span : trial.spans()) {
    const double to = span.to() > 0 ? span.to() : now;
    spans.push_back(
        {At(details, span.from()), FormatDuration(to - span.from()), SlotNames(span, lanes)});
  }
  lines.Section("slots held", spans);
  std::vector<std::vector<std::string>> resizes = {
      {"at", "replicas", "pause", "forming", "state", ""}};
  for (const v1::Resize& resize : trial.resizes()) {
    resizes.push_back(std::vector<std::string>{
        At(details, resize.at()),
        fmt::format("{} -> {}", resize.from_replicas(), resize.to_replicas()),
        fmt::format("{:.1f} ms", 1000 * resize.pause_s()),
        fmt::format("{:.1f} ms", 1000 * resize.form_s()),
        fmt::format("{:.1f} ms", 1000 * resize.broadcast_s()),
        resize.after_loss() ? "after a loss" : ""});
  }
  lines.Section("regroups", resizes);
  std::vector<std::vector<std::string>> decisions = {{"at", "decision", "slots", "reason"}};
  for (const v1::Decision& decision : details.decisions()) {
    if (decision.trial_number() != trial.number()) continue;
    decisions.push_back({At(details, decision.at()), decision.kind(),
                         fmt::format("{} -> {}", decision.from_slots(), decision.to_slots()),
                         decision.reason()});
  }
  lines.Section("decisions", decisions);
}

std::string Mebibytes(double bytes) { return fmt::format("{:.1f} MiB", bytes / (1024 * 1024)); }

// What its group is at between two steps: "handing over state, 1.2 of 2.0 GB".
std::string GroupPhase(const v1::Trial& trial) {
  constexpr double kGigabyte = 1e9;
  const double moved = static_cast<double>(trial.moved_bytes()) / kGigabyte;
  const double total = static_cast<double>(trial.moved_bytes_total()) / kGigabyte;
  if (total > 0) return fmt::format("{}, {:.1f} of {:.1f} GB", trial.group_phase(), moved, total);
  if (moved > 0) return fmt::format("{}, {:.1f} GB so far", trial.group_phase(), moved);
  return trial.group_phase();
}

// Empty: it is not known, or another figure's line has it.
std::string TextOfFigure(const FigureRow& row, const TrainingFigures& figures) {
  const double value = figures[row.figure];
  switch (row.shown) {
    case ShownAs::kNumber:
      return value != 0 ? FormatExactly(value) : "";
    case ShownAs::kBytes:
      return value > 0 ? Mebibytes(value) : "";
    case ShownAs::kSamplesAStep:
      if (!(value > 0)) return "";
      return fmt::format("{} samples x {} a step", figures.Whole(row.figure),
                         figures.Whole(Figure::kAccumulationSteps) + 1);
    case ShownAs::kStepTime:
      if (!(value > 0)) return "";
      return fmt::format("{:.3f} ms, {:.1f} % of it waiting for others", 1000 * value,
                         100 * figures[Figure::kSyncShare]);
    case ShownAs::kLongerStep:
      return value > 0 ? fmt::format("its first step took {:.1f} ms longer", 1000 * value) : "";
    case ShownAs::kTransport:
      return std::string(TextOf(GradientTransport(figures.Whole(row.figure))));
    case ShownAs::kNothing:
      return "";
  }
  return "";
}

// What an elastic trial tells of how it trains; an ended one, what it told last.
void AddFigures(const TrainingFigures& figures, Lines& lines) {
  for (const FigureRow& row : kFigureRows) {
    lines.Add(std::string(row.label), TextOfFigure(row, figures));
  }
}

// "by gp, which knew 128 trials: 120-125 ran, 90@9 was held back (trial@step); lr was given".
std::string LineageText(const v1::Lineage& lineage) {
  std::string text = fmt::format("of trial {}", static_cast<long>(lineage.parent()));
  text += lineage.has_step()
              ? fmt::format(", from its checkpoint of step {}", static_cast<long>(lineage.step()))
              : ", whose checkpoint it waits for";
  if (lineage.founder() == lineage.parent()) return text;
  return text + fmt::format("; the line began with trial {}", static_cast<long>(lineage.founder()));
}

std::string DrawText(const v1::TrialDraw& draw) {
  std::vector<std::string> knew;
  const auto add = [&knew](const std::string& what, const char* how) {
    if (!what.empty()) knew.push_back(what + how);
  };
  add(draw.running(), " ran");
  add(draw.held_back(), " held back (trial@step)");
  add(draw.left_out(), " without parameters");
  std::string text = draw.by().empty() ? "" : "by " + draw.by() + " ";
  text += draw.known() == 1 ? "knowing 1 trial"
                            : fmt::format("knowing {} trials", static_cast<long>(draw.known()));
  if (!knew.empty()) text += ": " + absl::StrJoin(knew, ", ");
  if (draw.given_size() > 0) text += "; given " + absl::StrJoin(draw.given(), ", ");
  return Cut(text, 1000);
}

}  // namespace

std::vector<std::string> TrialText(const v1::StudyDetails& details, const v1::Trial& trial,
                                   double now) {
  Lines lines;
  lines.Add("trial",
            fmt::format("{} of {} (id {})", trial.number(), details.study().name(), trial.id()));
  lines.Add("state", StateName(trial.state()));
  lines.Add("reason", Cut(trial.reason(), 1000));
  if (trial.has_value()) {
    std::string values = FormatExactly(trial.value());
    for (const double value : trial.other_values()) values += ", " + FormatExactly(value);
    lines.Add(MetricNames(details.study()), values);
  }
  if (trial.infeasible()) {
    lines.Add("breaks", details.study().constraints().empty()
                            ? "a constraint that its client has told"
                            : absl::StrJoin(details.study().constraints(), ", or "));
  }
  for (const v1::Parameter& parameter : trial.parameters()) {
    lines.Add("  " + parameter.name(), Cut(ExactParameter(parameter), 1000));
  }
  if (trial.has_draw()) lines.Add("drawn", DrawText(trial.draw()));
  if (trial.has_lineage()) lines.Add("clone", LineageText(trial.lineage()));
  lines.Add("command", Cut(ShellWords(trial.command()), 1000));
  lines.Add("slots", trial.slots() > 0 ? std::to_string(trial.slots()) : "");
  lines.Add("group", GroupPhase(trial));
  lines.Add("pinned to", trial.pinned_slots() > 0 ? std::to_string(trial.pinned_slots()) : "");
  lines.Add("slot-seconds", fmt::format("{:.1f}", SlotSeconds(trial, now)));
  AddFigures(FiguresIn(trial), lines);
  lines.Known("promise", trial.promise());
  lines.Known("restarts", trial.restarts());
  lines.Known("failed joins", trial.failed_joins());
  lines.Add("growth", Cut(trial.not_growing(), 1000));
  if (!trial.not_rehearsed().empty()) {
    lines.Add("rehearsal", "none of replicas that join: " + Cut(trial.not_rehearsed(), 1000));
  }
  lines.Add("checkpoint", trial.checkpoint());
  lines.Add("  stored on", absl::StrJoin(trial.checkpoint_nodes(), ", "));
  lines.Section("paid for slots", PaymentRows(trial.payments()));
  AddHistory(details, trial, now, lines);
  if (!trial.last_output().empty()) {
    lines.Text("");
    lines.Text("last output");
    std::size_t from = 0;
    while (from < trial.last_output().size()) {
      const std::size_t end =
          std::min(trial.last_output().find('\n', from), trial.last_output().size());
      lines.Text("  " + Cut(trial.last_output().substr(from, end - from), 1000));
      from = end + 1;
    }
  }
  return lines.Take();
}

}  // namespace espalier
