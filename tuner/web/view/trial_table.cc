#include "tuner/web/view/trial_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/json/parse_json.h"
#include "base/shortened.h"
#include "search_spaces/formats/optuna/distribution.h"
#include "tuner/core/state/slot_time.h"
#include "tuner/core/state/study_facts.h"
#include "tuner/web/view/best_value.h"
#include "tuner/web/view/parameter_shape.h"
#include "tuner/web/view/words.h"

namespace espalier::view {

namespace {

constexpr std::size_t kMaxWord = 300;         // bytes
constexpr std::size_t kMaxSuggestions = 256;  // that are looked at before the first row

// What a cell is made of.
struct Row {
  const Trial& trial;
  const View& view;
  bool running;  // or paused: what it does now says more than what is stored
  TrialActivity now{};
  BestSoFar best{};
};

double NumberOr(double number) { return number > 0 ? number : kUnknown; }
double MomentOr(Time at) { return at == Time{} ? kUnknown : SecondsOf(at); }
double Of(const std::optional<double>& number) { return number.value_or(kUnknown); }

// The number that has the digits of the float, and no more.
double Short(float figure) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), figure).ptr;
  double number = 0;
  std::from_chars(digits.data(), end, number);
  return NumberOr(number);
}

// By the name in the table of figures.
double FigureOf(const Row& row, std::string_view name) {
  const FigureRow* const figure = FindFigure(name);
  return figure == nullptr ? kUnknown : NumberOr(row.now.figures[figure->figure]);
}

bool Holds(const Trial& trial) { return !trial.spans.empty() && trial.spans.back().to == Time{}; }

struct NumberColumn {
  std::string_view name;
  double (*cell)(const Row& row);
};
constexpr NumberColumn kNumbers[] = {
    {"id", [](const Row& row) { return static_cast<double>(row.trial.id.value); }},
    {"number", [](const Row& row) { return static_cast<double>(row.trial.number); }},
    {"value", [](const Row& row) { return Of(row.best.value); }},
    {"best_step", [](const Row& row) { return Of(row.best.step); }},
    {"step",
     [](const Row& row) {
       const auto& values = row.trial.values;
       return values.empty() ? kUnknown : static_cast<double>(values.back().step);
     }},
    {"slots",
     [](const Row& row) {
       return Holds(row.trial) ? static_cast<double>(row.trial.spans.back().slots.size()) : 0.0;
     }},
    {"promise",
     [](const Row& row) {
       // Of one that has ended: as it was when it told its last value.
       if (row.running) return NumberOr(row.now.promise);
       const auto& values = row.trial.values;
       return values.empty() ? kUnknown : Short(values.back().promise);
     }},
    {"goodput", [](const Row& row) { return FigureOf(row, "goodput"); }},
    {"batch_size",
     [](const Row& row) {
       const auto& values = row.trial.values;
       if (!values.empty() && values.back().batch_size > 0) {
         return static_cast<double>(values.back().batch_size);
       }
       return FigureOf(row, "batch_size");
     }},
    {"slot_seconds", [](const Row& row) { return SlotSeconds(row.trial, row.view.now); }},
    {"created_at", [](const Row& row) { return MomentOr(row.trial.created); }},
    {"started_at", [](const Row& row) { return MomentOr(row.trial.started); }},
    {"ended_at", [](const Row& row) { return MomentOr(row.trial.ended); }},
    {"resizes", [](const Row& row) { return static_cast<double>(row.trial.resizes.size()); }},
    {"restarts", [](const Row& row) { return static_cast<double>(row.trial.restarts); }},
    {"pinned", [](const Row& row) { return NumberOr(row.trial.pinned_slots); }},
};

// Of the first slot that it holds, or has held last; empty: none.
std::string_view NodeOf(const Trial& trial, const TunerState& state) {
  if (trial.spans.empty() || trial.spans.back().slots.empty()) return "";
  const auto node = state.nodes.find(trial.spans.back().slots.front().node);
  return node == state.nodes.end() ? std::string_view() : std::string_view(node->second);
}

// An attribute is JSON; a text of it stands without its quotes.
std::string AttributeWord(const std::string& json) {
  if (!json.starts_with('"')) return Shortened(json, kMaxWord);
  const nlohmann::json value = ParseJson(json);
  return Shortened(value.is_string() ? value.get<std::string>() : json, kMaxWord);
}

}  // namespace

TrialTable::TrialTable(const Study& study) {
  for (const NumberColumn& column : kNumbers) {
    numbers_.push_back(&ColumnOf(std::string(column.name)));
  }
  for (const char* name : {"state", "reason", "node"}) ColumnOf(name, /*words=*/true);
  for (std::size_t i = 1; i < study.spec.directions.size(); ++i) {
    ColumnOf(absl::StrCat("values:", i));
  }
  if (!study.spec.constraints.empty()) ColumnOf("infeasible", /*words=*/true);
  if (study.clones > 0) {
    for (const char* name : {"parent", "parent_step"}) ColumnOf(name);
  }
  for (const ParameterShape& shape : ShapesOf(study, kMaxSuggestions)) {
    ColumnOf("p:" + shape.name, shape.words);
  }
}

std::size_t TrialTable::UnitsOf(const Trial& trial) {
  constexpr std::size_t kOfEach = 4;
  constexpr std::size_t kValuesOfUnit = 64;
  return kOfEach + trial.values.size() / kValuesOfUnit + trial.spans.size() / kOfEach +
         trial.parameters.size() + trial.suggested.size() + 2 * trial.attributes.user.size();
}

void TrialTable::Add(const Trial& trial, const Study& study, const View& view) {
  Row row{trial, view, trial.state == TrialState::kRunning || trial.state == TrialState::kPaused};
  row.now.figures = trial.figures;
  if (row.running) row.now = view.core.Activity(trial.id);
  row.best = BestOf(trial, study.spec);
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i]->Add(kNumbers[i].cell(row));
  ColumnOf("state").Add(WordOf(trial.state));
  const auto add_word = [this](const char* name, std::string_view word) {
    if (!word.empty()) ColumnOf(name).Add(word);
  };
  add_word("reason", Shortened(trial.reason, kMaxWord));
  add_word("node", NodeOf(trial, view.core.state()));
  if (const auto breaks = BreaksIfTold(study.spec, trial)) {
    ColumnOf("infeasible", /*words=*/true).Add(std::string_view(*breaks ? "yes" : "no"));
  }
  for (std::size_t i = 0; i < trial.other_values.size(); ++i) {
    ColumnOf(absl::StrCat("values:", i + 1)).Add(trial.other_values[i]);
  }
  if (trial.lineage->cloned()) {
    ColumnOf("parent").Add(static_cast<double>(trial.lineage->parent));
    const auto step = static_cast<double>(trial.lineage->step);
    ColumnOf("parent_step").Add(trial.lineage->awaited() ? kUnknown : step);
  }
  AddParameters(trial, study);
  AddAttributes(trial);
  ++rows_;
}

void TrialTable::AddParameters(const Trial& trial, const Study& study) {
  for (const Parameter& parameter : trial.parameters) {
    AddParameter(ParameterColumn(parameter.name), parameter.value);
  }
  for (const SuggestedValue& suggested : trial.suggested) {
    const Drawn& drawn = DrawnBy(static_cast<std::size_t>(suggested.suggestion), study);
    const auto index = static_cast<std::size_t>(std::max(0.0, suggested.value));
    AddParameter(drawn.column,
                 index < drawn.choices.size() ? drawn.choices[index] : suggested.value);
  }
}

void TrialTable::AddParameter(Column* column, const ParameterValue& value) {
  // One that is there twice, as clients may have it, counts as it was first.
  if (column == nullptr || column->size() > rows_) return;
  column->FillTo(rows_);
  if (const auto number = NumberOf(value)) {
    column->Add(*number);
  } else {
    column->Add(std::string_view(PlainText(value)));
  }
}

Column* TrialTable::ParameterColumn(const std::string& name) {
  if (!HasColumn("p:" + name) && ++parameter_columns_ > kMaxParameterColumns) return nullptr;
  return &ColumnOf("p:" + name);
}

const TrialTable::Drawn& TrialTable::DrawnBy(std::size_t suggestion, const Study& study) {
  while (drawn_.size() <= suggestion) {
    const Suggestion& of = study.suggestions[drawn_.size()];
    Drawn& drawn = drawn_.emplace_back();
    drawn.column = ParameterColumn(of.name);
    const auto distribution = ParseOptunaDistribution(of.distribution);
    if (!distribution.ok()) continue;
    for (std::size_t i = 0; i < distribution->choices.size(); ++i) {
      drawn.choices.push_back(OptunaValue(*distribution, static_cast<double>(i)));
    }
  }
  return drawn_[suggestion];
}

void TrialTable::AddAttributes(const Trial& trial) {
  for (const auto& [name, json] : trial.attributes.user) {
    if (!HasColumn("u:" + name) && ++attribute_columns_ > kMaxAttributeColumns) continue;
    ColumnOf("u:" + name, /*words=*/true).Add(std::string_view(AttributeWord(json)));
  }
}

Column& TrialTable::ColumnOf(const std::string& name, bool words) {
  auto column = columns_.find(name);
  if (column == columns_.end()) column = columns_.emplace(name, Column(words)).first;
  if (column->second.size() < rows_) column->second.FillTo(rows_);
  return column->second;
}

void TrialTable::PutInto(JsonText& json) const {
  json.Key("columns");
  json.Object([&] {
    for (const auto& entry : columns_) {
      const Column& column = entry.second;  // clang 14 captures no bindings
      json.Key(entry.first);
      json.Array([&] {
        for (const double cell : column.cells()) json.Value(cell);
        for (std::size_t i = column.size(); i < rows_; ++i) json.Null();
      });
    }
  });
  json.Key("words");
  json.Object([&] {
    for (const auto& [name, column] : columns_) {
      if (column.has_words()) json.Values(name, column.words());
    }
  });
}

}  // namespace espalier::view
