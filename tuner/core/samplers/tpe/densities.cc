#include "tuner/core/samplers/tpe/densities.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace espalier::samplers {
namespace {

using Side = TpeSplit::Side;

// Which kernel of which density each trial is, of those that have a value on each of the axes.
struct Kernels {
  std::vector<Side> side;             // by slot; kNeither: of none
  std::vector<std::uint32_t> number;  // by slot, within its density
  std::vector<std::size_t> running;   // the last kernels of the bad density
  std::size_t good = 0;
  std::size_t bad = 0;  // with those that run

  std::uint32_t first_running() const { return static_cast<std::uint32_t>(bad - running.size()); }
};

Kernels KernelsOn(const TpeTrials& trials, const std::vector<std::size_t>& axes) {
  PlacedTrials& ended = trials.ended;
  Kernels kernels;
  std::vector<std::uint8_t> there(ended.slots(), 1);
  for (const std::size_t axis : axes) {
    const std::vector<double>& at = ended.columns()[axis].at;
    for (std::size_t slot = 0; slot < there.size(); ++slot) {
      there[slot] &= static_cast<std::uint8_t>(at[slot] == at[slot]);
    }
  }
  kernels.side.assign(ended.slots(), Side::kNeither);
  kernels.number.resize(ended.slots());
  for (std::size_t i = 0; i < ended.size(); ++i) {
    const PlacedTrials::Slot slot = ended.slot(i);
    const Side side = trials.split.sides[ended.ended(i)];
    if (there[slot] == 0 || side == Side::kNeither) continue;
    kernels.side[slot] = side;
    std::size_t& count = side == Side::kGood ? kernels.good : kernels.bad;
    kernels.number[slot] = static_cast<std::uint32_t>(count++);
  }
  for (std::size_t i = 0; i < trials.running.size(); ++i) {
    const std::vector<double>& places = trials.running[i];
    const bool placed = std::none_of(axes.begin(), axes.end(),
                                     [&](std::size_t axis) { return std::isnan(places[axis]); });
    if (!placed) continue;
    kernels.running.push_back(i);
    ++kernels.bad;
  }
  return kernels;
}

// Puts kernels in their places on the space's axis, which is the i-th of the densities.
void PutOnUnordered(const TpeTrials& trials, const Kernels& kernels, std::size_t axis,
                    std::size_t i, TpeDensities& densities) {
  const std::vector<double>& at = trials.ended.columns()[axis].at;
  std::vector<std::uint32_t> good(kernels.good);
  std::vector<std::uint32_t> bad(kernels.bad);
  for (std::size_t slot = 0; slot < kernels.side.size(); ++slot) {
    if (kernels.side[slot] == Side::kNeither) continue;
    std::vector<std::uint32_t>& options = kernels.side[slot] == Side::kGood ? good : bad;
    options[kernels.number[slot]] = static_cast<std::uint32_t>(at[slot]);
  }
  std::uint32_t kernel = kernels.first_running();
  for (const std::size_t running : kernels.running) {
    bad[kernel++] = static_cast<std::uint32_t>(trials.running[running][axis]);
  }
  densities.good.PutOptions(i, std::move(good));
  densities.bad.PutOptions(i, std::move(bad));
}

void PutOnOrdered(const TpeTrials& trials, const Kernels& kernels, std::size_t axis, std::size_t i,
                  TpeDensities& densities) {
  PlacedTrials::Column& column = trials.ended.columns()[axis];
  std::vector<KernelPlace> good;
  std::vector<KernelPlace> bad(kernels.bad);
  std::size_t ended = 0;
  for (const PlacedTrials::Slot slot : column.ascending) {
    const Side side = kernels.side[slot];
    if (side == Side::kNeither) continue;
    KernelPlace place{.at = column.at[slot], .kernel = kernels.number[slot]};
    if (side == Side::kGood) {
      good.push_back(place);  // few, and soon others: what is kept is of the bad
      continue;
    }
    place.kept = slot;
    bad[ended++] = place;
  }
  const auto first_running = bad.begin() + static_cast<std::ptrdiff_t>(ended);
  std::uint32_t kernel = kernels.first_running();
  for (const std::size_t running : kernels.running) {
    bad[ended++] = {.at = trials.running[running][axis], .kernel = kernel++};
  }
  const auto before = [](const KernelPlace& a, const KernelPlace& b) { return a.at < b.at; };
  std::stable_sort(first_running, bad.end(), before);
  std::inplace_merge(bad.begin(), first_running, bad.end(), before);
  densities.good.Put(i, good);
  densities.bad.Put(i, bad, {.width = column.width, .constant = column.constant});
}

}  // namespace

TpeDensities DensitiesOf(const TpeTrials& trials, const std::vector<std::size_t>& axes,
                         const ParzenSettings& settings) {
  const Kernels kernels = KernelsOn(trials, axes);
  std::vector<const Axis*> own;
  for (const std::size_t axis : axes) own.push_back(&trials.ended.axes()[axis]);
  std::vector<double> of_good =
      trials.good_are_even ? std::vector<double>(kernels.good, 1.0) : WeightsByAge(kernels.good);
  TpeDensities densities{ParzenEstimator(own, std::move(of_good), settings),
                         ParzenEstimator(own, WeightsByAge(kernels.bad), settings)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto put = own[i]->unordered() ? PutOnUnordered : PutOnOrdered;
    put(trials, kernels, axes[i], i, densities);
  }
  return densities;
}

std::vector<double> WeightsByAge(std::size_t n) {
  constexpr std::size_t kFull = 25;
  std::vector<double> weights(n, 1.0);
  const std::size_t fading = n > kFull ? n - kFull : 0;
  for (std::size_t i = 0; i < fading; ++i) {
    const double share =
        fading == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(fading - 1);
    weights[i] = (1.0 - share) / static_cast<double>(n) + share;
  }
  return weights;
}

std::vector<double> TpeDensities::Ratios(std::span<const Point> points,
                                         const std::stop_token& stop) const {
  std::vector<double> ratios = good.LogDensities(points, stop);
  const std::vector<double> of_bad = bad.LogDensities(points, stop);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] -= of_bad[i];
  return ratios;
}

Point TpeDensities::Best(std::size_t candidates, const std::stop_token& stop,
                         Random& random) const {
  constexpr std::size_t kAtOnce = 64;  // bounds what is held
  Point best;
  double best_ratio = -std::numeric_limits<double>::infinity();
  for (std::size_t done = 0; done < candidates; done += kAtOnce) {
    std::vector<Point> points;
    for (std::size_t i = done; i < std::min(done + kAtOnce, candidates); ++i) {
      points.push_back(good.Sample(random));
    }
    const std::vector<double> ratios = Ratios(points, stop);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!best.empty() && !(ratios[i] > best_ratio)) continue;
      best_ratio = ratios[i];
      best = points[i];
    }
    if (stop.stop_requested()) break;
  }
  return best;
}

}  // namespace espalier::samplers
