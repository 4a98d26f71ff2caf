#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tuner/web/view/json_text.h"

namespace espalier::view {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// One column of a table: numbers, or words by their places in a list of all that are there. One
// that has numbers becomes one of words when it gets the first word.
class Column {
 public:
  explicit Column(bool words = false) : has_words_(words) {}

  void Add(double number);  // of a column of words, too: it is written out
  void Add(std::string_view word);
  // As many as there are before it, and that are not there.
  void FillTo(std::size_t rows) { cells_.resize(rows, kUnknown); }

  std::size_t size() const { return cells_.size(); }
  bool has_words() const { return has_words_; }
  const std::vector<double>& cells() const { return cells_; }
  const std::vector<std::string>& words() const { return words_; }

 private:
  double PlaceOf(std::string_view word);
  void TurnIntoWords();

  bool has_words_;
  std::vector<double> cells_;  // of a column of words: their places; kUnknown: nothing
  std::vector<std::string> words_;
  std::unordered_map<std::string, double> places_;
};

}  // namespace espalier::view
