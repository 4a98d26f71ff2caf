#include "tuner/messages/training_figures.h"

#include <algorithm>
#include <cmath>

namespace espalier {

const FigureRow* FindFigure(std::string_view name) {
  const auto* row = std::find_if(std::begin(kFigureRows), std::end(kFigureRows),
                                 [name](const FigureRow& r) { return r.name == name; });
  return row == std::end(kFigureRows) ? nullptr : row;
}

std::string_view TextOf(GradientTransport transport) {
  switch (transport) {
    case GradientTransport::kNone:
      break;
    case GradientTransport::kNccl:
      return "by NCCL";
    case GradientTransport::kHostUntilNccl:
      return "through host memory until NCCL's communicator is formed";
    case GradientTransport::kHost:
      return "through host memory";
  }
  return "";
}

std::int64_t TrainingFigures::Whole(Figure figure) const {
  constexpr double kMost = std::int64_t{1} << 53;
  const double value = (*this)[figure];
  return std::isnan(value) ? 0 : static_cast<std::int64_t>(std::clamp(value, -kMost, kMost));
}

}  // namespace espalier
