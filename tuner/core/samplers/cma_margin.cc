#include "tuner/core/samplers/cma_margin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "search_spaces/gaussian.h"

namespace espalier::samplers {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// How many standard deviations from the mean a tail of this probability begins. Requires one in
// (0, 1/2].
double TailAt(double probability) { return -NormalQuantile(probability); }

// One coordinate of the distribution of stretched draws.
struct Marginal {
  double mean;
  double deviation;  // sigma sqrt(C_jj), without the stretch
  double stretch;
};

// The mean is left of all limits or right of them: the value on the other side gets the margin by
// moving the mean.
void MoveMean(double limit, double margin, Marginal& marginal) {
  const double reach = marginal.deviation * marginal.stretch * TailAt(margin);
  const double side = marginal.mean > limit ? 1 : marginal.mean < limit ? -1 : 0;
  marginal.mean = limit + side * reach;
}

// The mean is between two limits: both tails get half the margin at least, and what they have above
// it is scaled so that all adds up to one; then mean and stretch follow from the two tails.
void StretchBetween(double low, double high, double margin, Marginal& marginal) {
  const double scale = marginal.deviation * marginal.stretch;
  const double half = margin / 2;
  const double below = NormalCdf((low - marginal.mean) / scale);
  const double above = 1 - NormalCdf((high - marginal.mean) / scale);
  const double middle = 1 - (below + above);
  const double raised_below = std::max(below, half);
  const double raised_above = std::max(above, half);
  const double excess = 1 - raised_below - raised_above - middle;
  const double movable = raised_below + middle + raised_above - 3 * half;
  const auto corrected = [&](double raised) {
    return std::clamp(raised + excess * (raised - half) / movable, 1e-10, 0.5 - 1e-10);
  };
  const double to_low = TailAt(corrected(raised_below));
  const double to_high = TailAt(corrected(raised_above));
  marginal.stretch = (high - low) / ((to_low + to_high) * marginal.deviation);
  marginal.mean = (low * to_high + high * to_low) / (to_low + to_high);
}

}  // namespace

double SteppedDimension::IndexAt(double place) const {
  return std::clamp(std::ceil(place * (count - 1) - 0.5), 0.0, count - 1);
}

double SteppedDimension::Limit(double index) const { return (index + 0.5) / (count - 1); }

CmaMargin::CmaMargin(const CmaEs& cma, std::vector<SteppedDimension> stepped)
    : stepped_(std::move(stepped)),
      margin_(1 / static_cast<double>(cma.dimensions() * cma.population())),
      stretch_(stepped_.size(), 1) {}

double CmaMargin::IndexOf(const CmaEs& cma, std::size_t s, double coordinate) const {
  const double mean = cma.mean()[static_cast<Index>(stepped_[s].dimension)];
  return stepped_[s].IndexAt((coordinate - mean) * stretch_[s] + mean);
}

double CmaMargin::CoordinateOf(const CmaEs& cma, std::size_t s, double index,
                               Random& random) const {
  const SteppedDimension& of = stepped_[s];
  const auto at = static_cast<Index>(of.dimension);
  const double mean = cma.mean()[at];
  const double deviation = cma.sigma() * std::sqrt(cma.Variances()[at]) * stretch_[s];
  // In stretched standard deviations from the mean.
  const double low = index > 0 ? (of.Limit(index - 1) - mean) / deviation : -kNoLimit;
  const double high = index < of.count - 1 ? (of.Limit(index) - mean) / deviation : kNoLimit;
  // On the side where the tail is small, so that its probability keeps its digits.
  const bool mirrored = low > 0;
  const double from = NormalCdf(mirrored ? -high : low);
  const double to = NormalCdf(mirrored ? -low : high);
  const double u = from + (to - from) * random.Uniform();
  double z = std::clamp(0.0, low, high);
  if (u > from && u < to && u > 0 && u < 1) {
    z = std::clamp((mirrored ? -1 : 1) * NormalQuantile(u), low, high);
  }
  return mean + z * deviation / stretch_[s];
}

void CmaMargin::Correct(CmaEs& cma) {
  VectorXd mean = cma.mean();
  const VectorXd variances = cma.Variances();
  for (std::size_t s = 0; s < stepped_.size(); ++s) {
    const SteppedDimension& of = stepped_[s];
    const auto at = static_cast<Index>(of.dimension);
    Marginal marginal{mean[at], cma.sigma() * std::sqrt(variances[at]), stretch_[s]};
    const double nearest = of.IndexAt(marginal.mean);
    const double low = of.Limit(std::clamp(nearest - 1, 0.0, of.count - 2));
    const double high = of.Limit(std::clamp(nearest, 0.0, of.count - 2));
    const double scale = marginal.deviation * marginal.stretch;
    const double below = NormalCdf((low - marginal.mean) / scale);
    const double above = 1 - NormalCdf((high - marginal.mean) / scale);
    if (std::max(below, above) <= 0.5) {
      StretchBetween(low, high, margin_, marginal);
    } else if (std::min(below, above) < margin_) {
      MoveMean(high, margin_, marginal);
    }
    if (!std::isfinite(marginal.mean) || !std::isfinite(marginal.stretch)) continue;
    mean[at] = marginal.mean;
    stretch_[s] = marginal.stretch;
  }
  cma.set_mean(std::move(mean));
}

}  // namespace espalier::samplers
