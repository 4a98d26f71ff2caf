#include "tuner/core/samplers/tpe/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "search_spaces/gaussian.h"
#include "search_spaces/portable_math.h"

namespace espalier::samplers {
namespace {

// Logarithm of a probability of 0 that sums can go on with.
constexpr double kLogOfNothing = -1e300;

// The prior's kernel on an ordered axis.
constexpr double kPriorAt = 0.5;
constexpr double kPriorWidth = 1.0;

// How many kernels are gone through for one point after the other: what is read of them stays in
// the nearest cache.
constexpr std::size_t kKernelsAtOnce = 64;

std::size_t RoundedUp(std::size_t kernels) {
  return (kernels + kKernelsAbreast - 1) / kKernelsAbreast * kKernelsAbreast;
}

double LogShare(double share) { return share > 0 ? QuickLog(share) : kLogOfNothing; }

// Of the Gaussian's mass between 0 and 1. Where both are far away, that is all of it.
double LogMassWithin(double at, double width) {
  constexpr double kAll = 8.5;
  const double below = at / width;
  const double above = (1 - at) / width;
  if (below > kAll && above > kAll) return 0;
  return QuickLog(NormalMass(-below, above));
}

// What the logarithm of such a Gaussian's density has beside the square, with the other sign.
double ConstantOf(double at, double width) {
  constexpr double kLogRoot = 0.91893853320467274;  // ln sqrt(2 pi)
  return QuickLog(width) + LogMassWithin(at, width) + kLogRoot;
}

// From the Gaussian cut to [0, 1], by inverting its distribution function.
double DrawWithin(double at, double width, Random& random) {
  const double below = NormalCdf(-at / width);
  const double above = NormalCdf((1 - at) / width);
  const double p = random.Uniform(below, above);
  if (p <= 0 || p >= 1) return at;
  return std::clamp(at + width * NormalQuantile(p), 0.0, 1.0);
}

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<const Axis*> axes, std::vector<double> weights,
                                 const ParzenSettings& settings)
    : axes_(std::move(axes)),
      settings_(settings),
      observed_(weights.size()),
      weights_(std::move(weights)) {
  if (observed_ == 0 || settings.prior_weight > 0) {
    weights_.push_back(observed_ == 0 ? 1.0 : settings.prior_weight);
  }
  kernels_ = weights_.size();
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) weight /= sum;
  weights_.resize(RoundedUp(kernels_), 0.0);
  base_.resize(weights_.size(), 0.0);
  std::fill(base_.begin() + static_cast<std::ptrdiff_t>(kernels_), base_.end(), kLogOfNothing);
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (axes_[axis]->continuous()) line_axes_.push_back(axis);
  }
  blocks_.resize(weights_.size() / kKernelsAbreast * line_axes_.size());
}

// Scott's rule in the number of trials and of axes, on half of their own spread: as good trials
// draw together, so do their kernels. The spread counts the prior as one trial more, and the width
// has a least; without the two, an early chance cluster closes in on itself and never comes out.
double ParzenEstimator::SharedWidth(std::span<const KernelPlace> places) const {
  constexpr double kSpreadShare = 0.5;
  constexpr double kLeast = 0.02;
  constexpr double kPriorMean = 0.5;
  constexpr double kPriorSquare = 1.0 / 3.0;
  const auto n = static_cast<double>(places.size());
  const double shrink =
      QuickExp(-QuickLog(std::max(n, 1.0)) / (static_cast<double>(axes_.size()) + 4));
  double mean = kPriorMean;
  double square = kPriorSquare;
  for (const KernelPlace& place : places) {
    mean += place.at;
    square += place.at * place.at;
  }
  mean /= n + 1;
  square /= n + 1;
  const double spread = std::sqrt(std::max(square - mean * mean, 0.0));
  return std::max(kSpreadShare * spread * shrink, kLeast);
}

// The distance to the farther neighbour (Bergstra et al. 2011, section 4), where the ends of the
// axis are neighbours of the outermost; unless these look to the inside alone.
std::vector<double> ParzenEstimator::Widths(std::span<const KernelPlace> ascending) const {
  constexpr double kLeast = 1e-12;
  const std::size_t n = ascending.size();
  if (settings_.shared) return std::vector<double>(n, SharedWidth(ascending));
  const double least =
      settings_.magic_clip ? 1 / std::min(100.0, static_cast<double>(n + 2)) : kLeast;
  std::vector<double> widths(n);
  double before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double at = ascending[i].at;
    const double after = i + 1 < n ? ascending[i + 1].at : 1.0;
    widths[i] = std::max(at - before, after - at);
    before = at;
  }
  if (!settings_.endpoints && n > 1) {
    widths.front() = ascending[1].at - ascending[0].at;
    widths.back() = ascending[n - 1].at - ascending[n - 2].at;
  }
  for (double& width : widths) width = std::clamp(width, least, 1.0);
  return widths;
}

void ParzenEstimator::Put(std::size_t axis, std::span<const KernelPlace> ascending,
                          KeptConstants kept) {
  const std::vector<double> widths = Widths(ascending);
  if (line_axes_.size() == 1 && axes_.size() == 1) {
    PutContinuous(0, InOrder(ascending), widths, kept);
    return;
  }
  const auto line = std::find(line_axes_.begin(), line_axes_.end(), axis);
  if (line == line_axes_.end()) {
    PutBells(axis, ascending, widths);
  } else {
    PutContinuous(static_cast<std::size_t>(line - line_axes_.begin()), ascending, widths, kept);
  }
}

// On a line alone, kernels that are near one another stand together: what is far away is passed
// over many at a time.
std::vector<KernelPlace> ParzenEstimator::InOrder(std::span<const KernelPlace> ascending) {
  std::vector<KernelPlace> places(ascending.begin(), ascending.end());
  std::vector<double> weights = weights_;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    weights_[i] = weights[places[i].kernel];
    places[i].kernel = i;
  }
  return places;
}

void ParzenEstimator::PutContinuous(std::size_t column, std::span<const KernelPlace> ascending,
                                    const std::vector<double>& widths, KeptConstants kept) {
  if (HasPrior()) {
    PutKernel(observed_, column, kPriorAt, kPriorWidth, ConstantOf(kPriorAt, kPriorWidth));
  }
  if (settings_.shared && !ascending.empty()) {
    PutAlike(column, ascending, widths.front());
    return;
  }
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const KernelPlace& place = ascending[i];
    if (place.kept == KernelPlace::kNotKept) {
      PutKernel(place.kernel, column, place.at, widths[i], ConstantOf(place.at, widths[i]));
      continue;
    }
    if (kept.width[place.kept] != widths[i]) {
      kept.width[place.kept] = widths[i];
      kept.constant[place.kept] = ConstantOf(place.at, widths[i]);
    }
    PutKernel(place.kernel, column, place.at, widths[i], kept.constant[place.kept]);
  }
}

void ParzenEstimator::PutKernel(std::size_t kernel, std::size_t column, double at, double width,
                                double constant) {
  KernelBlock& block = BlockOf(kernel, column);
  block.at[kernel % kKernelsAbreast] = at;
  // Half the square is subtracted.
  block.scale[kernel % kKernelsAbreast] = 1 / (std::numbers::sqrt2 * width);
  base_[kernel] -= constant;
}

// Kernels of one width. It is another one for each suggestion, so that nothing can be kept of it;
// where there are many, what the ends of the axis cut off is read between an eighth of a width.
void ParzenEstimator::PutAlike(std::size_t column, std::span<const KernelPlace> places,
                               double width) {
  constexpr double kPartsOfWidth = 8;
  const auto parts = static_cast<std::size_t>(std::ceil(kPartsOfWidth / width));
  if (places.size() <= parts + 3) {
    for (const KernelPlace& place : places) {
      PutKernel(place.kernel, column, place.at, width, ConstantOf(place.at, width));
    }
    return;
  }
  // One part more at either end, for a cubic through four.
  const double step = 1 / static_cast<double>(parts);
  std::vector<double> table(parts + 3);
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = ConstantOf((static_cast<double>(i) - 1) * step, width);
  }
  for (const KernelPlace& place : places) {
    const double at = place.at * static_cast<double>(parts);
    const std::size_t part = std::min(static_cast<std::size_t>(at), parts - 1);
    const double t = at - static_cast<double>(part);
    const double* const y = &table[part];  // y[1] and y[2] are at the part's ends
    const double before = -t * (t - 1) * (t - 2) / 6;
    const double low = (t + 1) * (t - 1) * (t - 2) / 2;
    const double high = -(t + 1) * t * (t - 2) / 2;
    const double after = (t + 1) * t * (t - 1) / 6;
    PutKernel(place.kernel, column, place.at, width,
              before * y[0] + low * y[1] + high * y[2] + after * y[3]);
  }
}

ParzenEstimator::Bell ParzenEstimator::BellOf(double at, double width) {
  return {at, width, QuickLog(width), LogMassWithin(at, width)};
}

void ParzenEstimator::PutBells(std::size_t axis, std::span<const KernelPlace> ascending,
                               const std::vector<double>& widths) {
  Cells cells{.axis = axis, .bells = {}, .bell_of = std::vector<std::uint32_t>(kernels_)};
  std::size_t first = 0;  // bell at this place
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const auto& [at, kernel, kept] = ascending[i];
    if (i > 0 && at != ascending[i - 1].at) first = cells.bells.size();
    const auto here = cells.bells.begin() + static_cast<std::ptrdiff_t>(first);
    const auto same = std::find_if(here, cells.bells.end(),
                                   [&](const Bell& bell) { return bell.width == widths[i]; });
    cells.bell_of[kernel] = static_cast<std::uint32_t>(same - cells.bells.begin());
    if (same == cells.bells.end()) {
      cells.bells.push_back(BellOf(at, widths[i]));
    }
  }
  if (HasPrior()) {
    cells.bell_of[observed_] = static_cast<std::uint32_t>(cells.bells.size());
    cells.bells.push_back(BellOf(kPriorAt, kPriorWidth));
  }
  cells_.push_back(std::move(cells));
}

void ParzenEstimator::PutOptions(std::size_t axis, std::vector<std::uint32_t> options) {
  const std::uint64_t count = axes_[axis]->count();
  options_.push_back({.axis = axis,
                      .option_of = std::move(options),
                      .hit = LogShare(OptionShare(true, count)),
                      .miss = LogShare(OptionShare(false, count)),
                      .prior = -QuickLog(static_cast<double>(count))});
}

// Each option has a share of the prior's weight beside what was observed.
double ParzenEstimator::OptionShare(bool observed, std::uint64_t options) const {
  const double smoothing = settings_.prior_weight / static_cast<double>(observed_ + 1);
  return (smoothing + (observed ? 1 : 0)) / (1 + smoothing * static_cast<double>(options));
}

void ParzenEstimator::AddOptionTerms(const Point& point, std::size_t begin, std::size_t end,
                                     double* term) const {
  for (const Options& options : options_) {
    const std::uint64_t option = point[options.axis].cell;
    const std::size_t observed_end = std::min(end, observed_);
    for (std::size_t k = begin; k < observed_end; ++k) {
      term[k - begin] += options.option_of[k] == option ? options.hit : options.miss;
    }
    if (HasPrior() && begin <= observed_ && observed_ < end) {
      term[observed_ - begin] += options.prior;
    }
  }
}

// One table a cell that a point lies in.
std::vector<std::vector<double>> ParzenEstimator::TablesOf(const Cells& cells,
                                                           std::span<const Point> points,
                                                           std::vector<CellTerms>& terms) const {
  std::vector<std::uint64_t> met;
  for (const Point& point : points) met.push_back(point[cells.axis].cell);
  std::sort(met.begin(), met.end());
  met.erase(std::unique(met.begin(), met.end()), met.end());
  std::vector<std::vector<double>> tables;
  for (const std::uint64_t number : met) {
    const UnitCell cell = axes_[cells.axis]->cell(number);
    std::vector<double>& table = tables.emplace_back();
    table.reserve(cells.bells.size());
    // Of more than 2^53 cells some have no width as doubles. It is the same for all bells.
    const double cell_width = std::max(cell.high - cell.low, 0x1.0p-64);
    const double log_cell_width = QuickLog(cell_width);
    for (const Bell& bell : cells.bells) {
      const double middle = (cell.Middle() - bell.at) / bell.width;
      const double width = cell_width / bell.width;
      const double log_mass = IsNarrow(middle, width)
                                  ? LogNarrowMass(middle, width, log_cell_width - bell.log_width)
                                  : LogNormalMass((cell.low - bell.at) / bell.width,
                                                  (cell.high - bell.at) / bell.width);
      table.push_back(log_mass - bell.log_mass);
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto at = std::lower_bound(met.begin(), met.end(), points[i][cells.axis].cell);
    terms[i].push_back(tables[static_cast<std::size_t>(at - met.begin())].data());
  }
  return tables;
}

std::vector<double> ParzenEstimator::LogDensities(std::span<const Point> points,
                                                  const std::stop_token& stop) const {
  std::vector<CellTerms> cell_terms(points.size());
  std::vector<std::vector<std::vector<double>>> tables;
  for (const Cells& cells : cells_) tables.push_back(TablesOf(cells, points, cell_terms));
  std::vector<double> lines;  // of each point, on the continuous axes
  for (const Point& point : points) {
    for (const std::size_t axis : line_axes_) lines.push_back(point[axis].at);
  }
  std::vector<double> largest(points.size(), -std::numeric_limits<double>::infinity());
  std::vector<double> sums(points.size(), 0.0);
  double term[kKernelsAtOnce];
  for (std::size_t begin = 0; begin < kernels_ && !stop.stop_requested(); begin += kKernelsAtOnce) {
    const std::size_t end = std::min(begin + kKernelsAtOnce, kernels_);
    const std::size_t terms = RoundedUp(end - begin);
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::copy_n(base_.data() + begin, terms, term);
      SubtractSquares(blocks_.data() + begin / kKernelsAbreast * line_axes_.size(),
                      line_axes_.size(), lines.data() + i * line_axes_.size(), terms, term);
      for (std::size_t c = 0; c < cells_.size(); ++c) {
        for (std::size_t k = begin; k < end; ++k) {
          term[k - begin] += cell_terms[i][c][cells_[c].bell_of[k]];
        }
      }
      AddOptionTerms(points[i], begin, end, term);
      const double most = LargestTerm(term, terms);
      if (most < largest[i] - kNegligibleTerm) continue;
      if (most > largest[i]) {
        sums[i] *= QuickExp(largest[i] - most);
        largest[i] = most;
      }
      sums[i] += WeightedSum(term, weights_.data() + begin, largest[i], terms);
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (sums[i] > 0) largest[i] += QuickLog(sums[i]);
  }
  return largest;
}

Coordinate ParzenEstimator::SampleAxis(std::size_t kernel, std::size_t axis, Random& random) const {
  for (const Options& options : options_) {
    if (options.axis != axis) continue;
    const std::uint64_t count = axes_[axis]->count();
    const double share = OptionShare(true, count) - OptionShare(false, count);
    if (kernel < observed_ && random.Uniform() < share) return {0, options.option_of[kernel]};
    return {0, random.Below(count)};
  }
  for (const Cells& cells : cells_) {
    if (cells.axis != axis) continue;
    const Bell& bell = cells.bells[cells.bell_of[kernel]];
    return axes_[axis]->PlaceAt(DrawWithin(bell.at, bell.width, random));
  }
  const auto line = std::find(line_axes_.begin(), line_axes_.end(), axis);
  const auto column = static_cast<std::size_t>(line - line_axes_.begin());
  const KernelBlock& block = blocks_[kernel / kKernelsAbreast * line_axes_.size() + column];
  const double width = 1 / (std::numbers::sqrt2 * block.scale[kernel % kKernelsAbreast]);
  return axes_[axis]->PlaceAt(DrawWithin(block.at[kernel % kKernelsAbreast], width, random));
}

Point ParzenEstimator::Sample(Random& random) const {
  double rest = random.Uniform();
  std::size_t kernel = 0;
  while (kernel + 1 < kernels_ && rest >= weights_[kernel]) rest -= weights_[kernel++];
  Point point(axes_.size());
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    point[axis] = SampleAxis(kernel, axis, random);
  }
  return point;
}

}  // namespace espalier::samplers
