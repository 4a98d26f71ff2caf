#include "tuner/web/view/column.h"

#include <cmath>

#include "tuner/web/view/parameter_shape.h"

namespace espalier::view {

void Column::Add(double number) {
  if (has_words_ && !std::isnan(number)) return Add(PlainText(number));
  cells_.push_back(number);
}

void Column::Add(std::string_view word) {
  if (!has_words_) TurnIntoWords();
  cells_.push_back(PlaceOf(word));
}

double Column::PlaceOf(std::string_view word) {
  const auto [place, added] =
      places_.try_emplace(std::string(word), static_cast<double>(words_.size()));
  if (added) words_.emplace_back(word);
  return place->second;
}

void Column::TurnIntoWords() {
  has_words_ = true;
  for (double& cell : cells_) {
    if (!std::isnan(cell)) cell = PlaceOf(PlainText(cell));
  }
}

}  // namespace espalier::view
