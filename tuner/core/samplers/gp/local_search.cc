#include "tuner/core/samplers/gp/local_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tuner/core/samplers/gp/lbfgs.h"

namespace espalier::samplers::gp {
namespace {

constexpr int kMostRounds = 100;
constexpr std::int64_t kMostAtOnce = 16;  // values of a grid
constexpr Eigen::Index kContinuous = -1;

}  // namespace

LocalSearch::LocalSearch(const GpSpace& space, const Acquisition& acquisition, Points starts)
    : space_(space),
      acquisition_(acquisition),
      lengths_(acquisition.Lengths()),
      points_(std::move(starts)),
      values_(acquisition.Values(Masked(points_))) {
  for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
    (space.kind(axis) == AxisKind::kContinuous ? continuous_ : others_).push_back(axis);
  }
}

Points LocalSearch::Masked(const Points& points) const {
  Points masked(points.rows(), points.cols());
  for (Eigen::Index i = 0; i < points.rows(); ++i) masked.row(i) = space_.Masked(points.row(i));
  return masked;
}

void LocalSearch::Run(const std::stop_token& stop) {
  // Where each search got further last; it ends once it comes there again.
  std::vector<Eigen::Index> last(static_cast<std::size_t>(points_.rows()), kContinuous);
  Indices searches(last.size());
  std::iota(searches.begin(), searches.end(), Eigen::Index{0});
  const auto note = [&](const Indices& further, Eigen::Index axis) {
    for (const Eigen::Index search : further) last[static_cast<std::size_t>(search)] = axis;
  };
  const auto end_those_last_at = [&](Eigen::Index axis) {
    std::erase_if(searches, [&](Eigen::Index search) {
      return last[static_cast<std::size_t>(search)] == axis;
    });
  };
  for (int round = 0; round < kMostRounds && !searches.empty(); ++round) {
    note(AscendContinuous(searches, stop), kContinuous);
    for (const Eigen::Index axis : others_) {
      end_those_last_at(axis);
      note(SearchAxis(axis, searches, stop), axis);
      if (stop.stop_requested()) return;
    }
    end_those_last_at(kContinuous);
  }
}

LocalSearch::Indices LocalSearch::AscendContinuous(const Indices& searches,
                                                   const std::stop_token& stop) {
  if (continuous_.empty() || searches.empty()) return {};
  const auto count = static_cast<Eigen::Index>(continuous_.size());
  const Point lengths = lengths_(continuous_);
  // In units of the lengths; an inactive axis stays where it is.
  std::vector<Minimization> minimizations;
  for (const Eigen::Index search : searches) {
    const std::vector<bool> active = space_.Active(points_.row(search));
    Eigen::VectorXd start(count), low(count), high(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const Eigen::Index axis = continuous_[static_cast<std::size_t>(i)];
      start[i] = points_(search, axis) / lengths[i];
      low[i] = active[static_cast<std::size_t>(axis)] ? 0 : start[i];
      high[i] = active[static_cast<std::size_t>(axis)] ? 1 / lengths[i] : start[i];
    }
    minimizations.emplace_back(start, low, high, MinimizationLimits{});
  }
  const auto place = [&](Eigen::Index search, const Eigen::VectorXd& scaled) {
    Point point = points_.row(search);
    point(continuous_) = scaled.transpose().cwiseProduct(lengths).cwiseMax(0.0).cwiseMin(1.0);
    return point;
  };
  for (;;) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < minimizations.size(); ++i) {
      if (!minimizations[i].done()) open.push_back(i);
    }
    if (open.empty() || stop.stop_requested()) break;
    Points at(static_cast<Eigen::Index>(open.size()), points_.cols());
    for (std::size_t i = 0; i < open.size(); ++i) {
      at.row(static_cast<Eigen::Index>(i)) =
          space_.Masked(place(searches[open[i]], minimizations[open[i]].next()));
    }
    const auto found = acquisition_.ValuesWithGradients(at);
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      const Point gradient = found.gradients.row(row);
      minimizations[open[i]].Tell(-found.values[row],
                                  -gradient(continuous_).cwiseProduct(lengths).transpose());
    }
  }
  Indices further;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    const Eigen::Index search = searches[i];
    if (minimizations[i].best().size() == 0 || !(-minimizations[i].value() > values_[search]))
      continue;
    points_.row(search) = place(search, minimizations[i].best());
    values_[search] = -minimizations[i].value();
    further.push_back(search);
  }
  return further;
}

LocalSearch::Indices LocalSearch::SearchAxis(Eigen::Index axis, const Indices& searches,
                                             const std::stop_token& stop) {
  std::vector<Window> windows;
  for (const Eigen::Index search : searches) {
    if (!space_.Active(points_.row(search))[static_cast<std::size_t>(axis)]) continue;
    const double place = points_(search, axis);
    windows.push_back(
        {search, 0, space_.values(axis) - 1,
         space_.unordered(axis) ? static_cast<std::int64_t>(place) : space_.Nearest(axis, place)});
  }
  const Eigen::VectorXd before = values_;
  while (!windows.empty() && !stop.stop_requested()) LookInto(axis, windows);
  Indices further;
  for (const Eigen::Index search : searches) {
    if (values_[search] > before[search]) further.push_back(search);
  }
  return further;
}

void LocalSearch::LookInto(Eigen::Index axis, std::vector<Window>& windows) {
  struct Look {
    std::size_t window;
    std::int64_t value;
  };
  std::vector<Look> looks;
  std::vector<std::int64_t> spacing;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const Window& window = windows[w];
    const std::int64_t values = window.high - window.low + 1;
    const bool all = space_.unordered(axis) || values <= kMostAtOnce;
    spacing.push_back(all ? 1 : (values + kMostAtOnce - 2) / (kMostAtOnce - 1));
    for (std::int64_t value = window.low; value <= window.high; value += spacing.back()) {
      if (value != window.best) looks.push_back({w, value});
    }
  }
  Points at(static_cast<Eigen::Index>(looks.size()), points_.cols());
  for (std::size_t i = 0; i < looks.size(); ++i) {
    Point point = points_.row(windows[looks[i].window].search);
    point[axis] = space_.PlaceOfValue(axis, looks[i].value);
    at.row(static_cast<Eigen::Index>(i)) = space_.Masked(point);
  }
  const Eigen::VectorXd values = acquisition_.Values(at);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    Window& window = windows[looks[i].window];
    if (!(values[static_cast<Eigen::Index>(i)] > values_[window.search])) continue;
    window.best = looks[i].value;
    values_[window.search] = values[static_cast<Eigen::Index>(i)];
    points_(window.search, axis) = space_.PlaceOfValue(axis, looks[i].value);
  }
  std::vector<Window> left;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    if (spacing[w] == 1) continue;
    Window window = windows[w];
    window.low = std::max(window.low, window.best - spacing[w] + 1);
    window.high = std::min(window.high, window.best + spacing[w] - 1);
    left.push_back(window);
  }
  windows = std::move(left);
}

}  // namespace espalier::samplers::gp
