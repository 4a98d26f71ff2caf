#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "base/random.h"
#include "tuner/core/samplers/axis.h"
#include "tuner/core/samplers/tpe/kernel_sums.h"

namespace espalier::samplers {

struct ParzenSettings {
  double prior_weight = 1;  // a kernel of a trial weighs up to 1
  bool magic_clip = true;   // whether kernels have a least width, of up to a hundredth of the axis
  bool endpoints = false;   // whether the outermost kernels reach to the ends of the axis
  // Whether all kernels of an axis are of one width, by Scott's rule; magic_clip and endpoints are
  // of others.
  bool shared = false;
};

// One kernel on an ordered axis.
struct KernelPlace {
  static constexpr std::uint32_t kNotKept = 0xffffffff;

  double at;
  std::uint32_t kernel;
  std::uint32_t kept = kNotKept;  // which of what is kept is this kernel's
};

// Widths of kernels, and what was worked out of place and width, from one estimator to the next: it
// is used where the width is the same still, and put there otherwise.
struct KeptConstants {
  std::span<double> width;
  std::span<double> constant;
};

// A density estimated from trials, as in Optuna 5.0: a mixture of one kernel a trial, and one for
// the prior, which lies in the middle and is as wide as the space. Kernels are products over the
// axes: of Gaussians cut to [0, 1], as wide as it is to the farther neighbour on that axis or, with
// `shared`, as the spread and number of all tell (after Falkner et al. 2018); of what
// these have in a cell where the axis is discrete; and of smoothed indicators on unordered axes
// (Bergstra et al. 2011, section 4; Watanabe 2023: Tree-Structured Parzen Estimator, section 3.3).
// On [0, 1], a continuous axis adds the logarithm of its own width to the density on that width.
class ParzenEstimator {
 public:
  // Kernels, with one positive weight each, which have no place yet. The axes must outlive it.
  ParzenEstimator(std::vector<const Axis*> axes, std::vector<double> weights,
                  const ParzenSettings& settings);

  // Puts all kernels in their places on one axis after the other, each once, before anything else
  // is asked. Ordered axes: by place, ascending. Unordered ones: which option each kernel has.
  void Put(std::size_t axis, std::span<const KernelPlace> ascending, KeptConstants kept = {});
  void PutOptions(std::size_t axis, std::vector<std::uint32_t> options);

  Point Sample(Random& random) const;

  // Of each point. Once `stop` asks, they are of no use to anybody.
  std::vector<double> LogDensities(std::span<const Point> points,
                                   const std::stop_token& stop = {}) const;

 private:
  // Kernels at one place with one width, on a discrete axis.
  struct Bell {
    double at;
    double width;
    double log_width;
    double log_mass;  // of what is left of it between 0 and 1
  };
  struct Cells {
    std::size_t axis;
    std::vector<Bell> bells;
    std::vector<std::uint32_t> bell_of;  // of each kernel
  };
  struct Options {
    std::size_t axis;
    std::vector<std::uint32_t> option_of;  // of each kernel but the prior's
    // Logarithms of what a kernel gives its own option, another one, and the prior's gives each.
    double hit;
    double miss;
    double prior;
  };
  static Bell BellOf(double at, double width);
  // For one point: what kernels add to the logarithm by their bell on each discrete axis.
  using CellTerms = std::vector<const double*>;

  std::vector<double> Widths(std::span<const KernelPlace> ascending) const;
  double SharedWidth(std::span<const KernelPlace> places) const;
  std::vector<KernelPlace> InOrder(std::span<const KernelPlace> ascending);
  void PutContinuous(std::size_t column, std::span<const KernelPlace> ascending,
                     const std::vector<double>& widths, KeptConstants kept);
  void PutAlike(std::size_t column, std::span<const KernelPlace> places, double width);
  void PutKernel(std::size_t kernel, std::size_t column, double at, double width, double constant);
  void PutBells(std::size_t axis, std::span<const KernelPlace> ascending,
                const std::vector<double>& widths);
  KernelBlock& BlockOf(std::size_t kernel, std::size_t column) {
    return blocks_[kernel / kKernelsAbreast * line_axes_.size() + column];
  }
  bool HasPrior() const { return kernels_ > observed_; }
  double OptionShare(bool observed, std::uint64_t options) const;

  void AddOptionTerms(const Point& point, std::size_t begin, std::size_t end, double* term) const;
  std::vector<std::vector<double>> TablesOf(const Cells& cells, std::span<const Point> points,
                                            std::vector<CellTerms>& terms) const;
  Coordinate SampleAxis(std::size_t kernel, std::size_t axis, Random& random) const;

  std::vector<const Axis*> axes_;
  ParzenSettings settings_;
  std::size_t observed_;                // kernels of trials
  std::size_t kernels_;                 // with the prior's, which is the last
  std::vector<double> weights_;         // add up to one; 0 where four abreast are not full
  std::vector<double> base_;            // by kernel: the logarithm of what no argument changes
  std::vector<std::size_t> line_axes_;  // the continuous ones
  std::vector<KernelBlock> blocks_;     // by four kernels, then continuous axis
  std::vector<Cells> cells_;
  std::vector<Options> options_;
};

}  // namespace espalier::samplers
