#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/api/tuner.h"
#include "tuner/web/view/column.h"
#include "tuner/web/view/json_text.h"

namespace espalier::view {

// Programs may name their attributes as they like: columns beyond these are left out.
inline constexpr std::size_t kMaxAttributeColumns = 200;
inline constexpr std::size_t kMaxParameterColumns = 2000;

// A study's trials as columns. Filled on the owner's thread, a slice at a time.
class TrialTable {
 public:
  explicit TrialTable(const Study& study);

  // So much of a slice (slices.h) as the trial takes.
  static std::size_t UnitsOf(const Trial& trial);

  void Add(const Trial& trial, const Study& study, const View& view);

  std::size_t rows() const { return rows_; }
  // The members "columns" and "words".
  void PutInto(JsonText& json) const;

 private:
  // A parameter that clients have drawn: its column, and what its numbers stand for.
  struct Drawn {
    Column* column = nullptr;             // none: there would be too many
    std::vector<ParameterValue> choices;  // none: the number itself
  };

  Column& ColumnOf(const std::string& name, bool words = false);
  bool HasColumn(const std::string& name) const { return columns_.contains(name); }
  Column* ParameterColumn(const std::string& name);  // null: there would be too many
  void AddParameter(Column* column, const ParameterValue& value);
  void AddParameters(const Trial& trial, const Study& study);
  void AddAttributes(const Trial& trial);
  const Drawn& DrawnBy(std::size_t suggestion, const Study& study);

  std::size_t rows_ = 0;
  std::map<std::string, Column, std::less<>> columns_;  // by name
  std::vector<Column*> numbers_;                        // that each trial has
  std::size_t attribute_columns_ = 0;
  std::size_t parameter_columns_ = 0;  // beyond those of the study
  std::vector<Drawn> drawn_;           // by suggestion of the study
};

}  // namespace espalier::view
