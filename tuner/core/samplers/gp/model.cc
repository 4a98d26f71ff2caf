#include "tuner/core/samplers/gp/model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "tuner/core/samplers/gp/boxes.h"
#include "tuner/core/samplers/gp/expected_improvement.h"
#include "tuner/core/samplers/gp/fantasies.h"
#include "tuner/core/samplers/gp/fit.h"
#include "tuner/core/samplers/gp/hypervolume_improvement.h"
#include "tuner/core/samplers/gp/sampled_improvement.h"

namespace espalier::samplers::gp {
namespace {

constexpr Eigen::Index kDraws = 128;
// Of suggestions for several objectives, those whose hypervolume begins beyond all trials.
constexpr double kShareOfAll = 1.0 / 3;
// The best value where no trial keeps to the constraints.
constexpr double kNoBest = -std::numeric_limits<double>::infinity();

// A fit to many trials begins where one to so many of them has ended.
constexpr Eigen::Index kCoarseTrials = 64;

// What values differ from a trend by varies at least so much, as a share of what the trend varies
// by: a few trials that agree with it, where it is high, do not show that it is right elsewhere.
constexpr double kLeastDoubt = 0.25;

// Fits a process to standardised values, of which the first ones stand for all.
class ModelFit {
 public:
  ModelFit(const GpSpace& space, bool noise_is_fixed, const std::stop_token& stop)
      : noise_is_fixed_(noise_is_fixed), stop_(stop) {
    for (Eigen::Index axis = 0; axis < space.axes(); ++axis) {
      unordered_.push_back(space.unordered(axis));
    }
  }

  GaussianProcess Of(const Points& points, const Eigen::VectorXd& values, Eigen::Index leading,
                     const Trend& trend = {}) const {
    KernelParameters parameters = FitAll(points, values - trend.At(points), leading);
    if (trend.process) {
      parameters.scale = std::max(parameters.scale, kLeastDoubt * trend.slope * trend.slope);
    }
    return GaussianProcess(Kernel(unordered_, parameters), points, values, leading, trend);
  }

  // Of another study's trials and one objective, along the axes of which they tell.
  GaussianProcess Along(const BeforeTrials& before, Eigen::Index objective) const {
    const Eigen::VectorXd values = before.values.col(objective);
    constexpr double kNextToNothing = 1e-4;
    std::vector<bool> unordered;
    for (const Eigen::Index axis : before.axes) {
      unordered.push_back(unordered_[static_cast<std::size_t>(axis)]);
    }
    const auto few = static_cast<Eigen::Index>(before.axes.size());
    KernelParameters parameters =
        FitParameters({before.points(Eigen::all, before.axes), values, unordered},
                      DefaultParameters(few, false), false, stop_);
    Eigen::VectorXd lengths = Eigen::VectorXd::Constant(before.points.cols(), kNextToNothing);
    lengths(before.axes) = parameters.inverse_squared_lengths;
    parameters.inverse_squared_lengths = std::move(lengths);
    return {Kernel(unordered_, std::move(parameters)), before.points, values, before.points.rows()};
  }

 private:
  KernelParameters FitAll(const Points& points, const Eigen::VectorXd& values,
                          Eigen::Index leading) const {
    KernelParameters parameters = DefaultParameters(points.cols(), noise_is_fixed_);
    if (leading == 0) {  // where their prior is highest
      parameters.inverse_squared_lengths.setConstant(5 * (1 + std::sqrt(1.04)));
      return parameters;
    }
    if (leading >= 2 * kCoarseTrials) {
      const auto some = Eigen::seq(0, leading - 1, leading / kCoarseTrials);
      parameters = FitTo(points(some, Eigen::all), values(some), parameters);
    }
    const Observed observed{points.topRows(leading), values.head(leading), unordered_};
    return noise_is_fixed_ ? FitParameters(observed, parameters, true, stop_)
                           : FitWithOrWithoutNoise(observed, parameters, stop_);
  }

  KernelParameters FitTo(const Points& points, const Eigen::VectorXd& values,
                         const KernelParameters& start) const {
    return FitParameters({points, values, unordered_}, start, noise_is_fixed_, stop_);
  }

  std::vector<bool> unordered_;
  bool noise_is_fixed_;
  const std::stop_token& stop_;
};

using Indices = std::vector<Eigen::Index>;  // of trials

Indices FeasibleOf(const GpTrials& trials) {
  Indices feasible;
  for (std::size_t i = 0; i < trials.feasible.size(); ++i) {
    if (trials.feasible[i]) feasible.push_back(static_cast<Eigen::Index>(i));
  }
  return feasible;
}

// Of the trials, those that none dominates.
Indices FrontOf(const Eigen::MatrixXd& values, const Indices& trials) {
  Indices front;
  for (const Eigen::Index i : trials) {
    const bool dominated = std::any_of(trials.begin(), trials.end(), [&](Eigen::Index other) {
      return (values.row(other).array() >= values.row(i).array()).all() &&
             (values.row(other).array() > values.row(i).array()).any();
    });
    if (!dominated) front.push_back(i);
  }
  return front;
}

// Good trials: the best one, or some of the front.
Points KnownOf(const GpTrials& trials, const Indices& feasible, std::size_t most, Random& random) {
  Indices known;
  if (trials.values.cols() == 1) {
    for (const Eigen::Index i : feasible) {
      if (known.empty() || trials.values(i, 0) > trials.values(known.front(), 0)) known = {i};
    }
  } else {
    known = FrontOf(trials.values, feasible);
    for (std::size_t i = 0; i + 1 < known.size(); ++i) {
      std::swap(known[i], known[i + random.Below(known.size() - i)]);
    }
    known.resize(std::min(known.size(), most));
  }
  return trials.points(known, Eigen::all);
}

// Where hypervolume begins: beyond the front, or beyond all trials. From there what extends the
// front is worth most, such as a part of it that lies apart and is not known yet.
Eigen::RowVectorXd DrawReference(const Eigen::MatrixXd& values, Random& random) {
  return random.Uniform() < kShareOfAll ? ReferencePoint(values) : ReferenceBeyondFront(values);
}

std::unique_ptr<const Utility> UtilityOf(const GpTrials& trials, const Indices& feasible,
                                         std::vector<double> thresholds, Random& random) {
  const Eigen::Index objectives = trials.values.cols();
  const auto first = static_cast<std::size_t>(objectives);
  if (objectives == 1) {
    const double best = feasible.empty() ? kNoBest : trials.values(feasible, 0).maxCoeff();
    return std::make_unique<ExpectedImprovement>(best, std::move(thresholds));
  }
  if (feasible.empty()) return std::make_unique<Feasibility>(first, std::move(thresholds));
  const Eigen::MatrixXd values = trials.values(feasible, Eigen::all);
  Boxes boxes = NonDominatedBoxes(values, DrawReference(values, random));
  HypervolumeImprovement::Draws draws{{std::move(boxes)},
                                      NormalDraws(kDraws, objectives, random.Next())};
  return std::make_unique<HypervolumeImprovement>(first, std::move(draws), std::move(thresholds));
}

// The hypervolume above trials and, in each draw, above what running ones come to.
std::vector<Boxes> BoxesOfDraws(const Eigen::MatrixXd& values,
                                const std::vector<SampledImprovement::OfDraws>& draws,
                                const std::vector<double>& thresholds, Random& random) {
  const Eigen::RowVectorXd reference = DrawReference(values, random);
  std::vector<Boxes> boxes;
  for (Eigen::Index s = 0; s < kDraws; ++s) {
    boxes.push_back(NonDominatedBoxes(WithRunning(values, draws, thresholds, s), reference));
  }
  return boxes;
}

// As above, and gives the models their fantasies.
std::unique_ptr<const Utility> UtilityBesideRunning(const GpTrials& trials, const Indices& feasible,
                                                    std::vector<double> thresholds,
                                                    std::vector<GaussianProcess>& models,
                                                    Random& random) {
  const Eigen::Index objectives = trials.values.cols();
  const auto first = static_cast<std::size_t>(objectives);
  if (objectives > 1 && feasible.empty()) {
    return std::make_unique<Feasibility>(first, std::move(thresholds));
  }
  const Eigen::Index running = trials.running.rows();
  std::vector<SampledImprovement::OfDraws> draws;
  for (GaussianProcess& model : models) {
    const Eigen::MatrixXd normals = NormalDraws(kDraws, running + 1, random.Next());
    WithFantasies with = Fantasise(model, trials.running, normals.leftCols(running));
    model = std::move(with.model);
    draws.push_back({std::move(with.values), normals.col(running)});
  }
  if (objectives == 1) {
    const double best = feasible.empty() ? kNoBest : trials.values(feasible, 0).maxCoeff();
    return std::make_unique<SampledImprovement>(best, std::move(thresholds), std::move(draws));
  }
  HypervolumeImprovement::Draws of_volume{
      BoxesOfDraws(trials.values(feasible, Eigen::all), draws, thresholds, random),
      Eigen::MatrixXd(kDraws, static_cast<Eigen::Index>(models.size())), true};
  for (std::size_t m = 0; m < models.size(); ++m) {
    of_volume.normals.col(static_cast<Eigen::Index>(m)) = draws[m].normals;
  }
  return std::make_unique<HypervolumeImprovement>(first, std::move(of_volume),
                                                  std::move(thresholds));
}

// Gives the models their fantasies where trials run.
std::unique_ptr<const Utility> UtilityOfTrials(const GpTrials& trials, const Indices& feasible,
                                               std::vector<double> thresholds,
                                               std::vector<GaussianProcess>& models,
                                               Random& random) {
  return trials.running.rows() == 0
             ? UtilityOf(trials, feasible, std::move(thresholds), random)
             : UtilityBesideRunning(trials, feasible, std::move(thresholds), models, random);
}

// What the study's values, of mean 0 and variance 1, are expected to be by the other's.
Trend TrendOf(GaussianProcess other, const GpTrials& trials, Eigen::Index objective) {
  constexpr double kWeight = 1;  // of a factor of 1, in squares of the other's values
  auto process = std::make_shared<const GaussianProcess>(std::move(other));
  const Eigen::VectorXd expected = process->At(trials.points).mean.row(0).transpose();
  const double mean = expected.mean();
  const Eigen::VectorXd apart = expected.array() - mean;
  const Eigen::VectorXd values = trials.values.col(objective);
  const double slope =
      std::max(0.0, (apart.dot(values) + kWeight) / (apart.squaredNorm() + kWeight));
  return {std::move(process), values.mean() - slope * mean, slope};
}

}  // namespace

Model ModelOf(const GpTrials& trials, const GpSpace& space, const ModelSettings& settings,
              Random& random, const std::stop_token& stop, const BeforeTrials* before) {
  const ModelFit fit(space, settings.deterministic, stop);
  std::vector<GaussianProcess> models;
  std::vector<double> thresholds;
  for (Eigen::Index k = 0; k < trials.values.cols(); ++k) {
    Trend trend;
    if (before != nullptr) trend = TrendOf(fit.Along(*before, k), trials, k);
    models.push_back(fit.Of(trials.points, trials.values.col(k), trials.leading, trend));
  }
  for (const ConstraintValues& constraint : trials.constraints) {
    models.push_back(fit.Of(constraint.points, constraint.values, constraint.leading));
    thresholds.push_back(constraint.threshold);
  }
  const Indices feasible = FeasibleOf(trials);
  const Points known = KnownOf(trials, feasible, settings.most_known, random);
  std::unique_ptr<const Utility> utility =
      UtilityOfTrials(trials, feasible, std::move(thresholds), models, random);
  return {Acquisition(std::move(models), static_cast<std::size_t>(trials.values.cols()),
                      std::move(utility)),
          known};
}

Model ModelInPlace(const BeforeTrials& before, const Points& failed, const Points& running,
                   const GpSpace& space, const ModelSettings& settings, Random& random,
                   const std::stop_token& stop) {
  const ModelFit fit(space, settings.deterministic, stop);
  const Eigen::Index objectives = before.values.cols();
  GpTrials expected;  // the other study's, as this one is expected to have them
  expected.points = before.points;
  expected.values.resize(before.points.rows(), objectives);
  expected.feasible.assign(static_cast<std::size_t>(before.points.rows()), true);
  expected.running = running;
  std::vector<GaussianProcess> models;
  for (Eigen::Index k = 0; k < objectives; ++k) {
    const Trend trend{std::make_shared<const GaussianProcess>(fit.Along(before, k)), 0, 1};
    expected.values.col(k) = trend.At(before.points);
    const Eigen::VectorXd as_bad =
        Eigen::VectorXd::Constant(failed.rows(), before.values.col(k).minCoeff());
    models.push_back(fit.Of(failed, as_bad, failed.rows(), trend));
  }
  const Indices all = FeasibleOf(expected);
  const Points known = KnownOf(expected, all, settings.most_known, random);
  std::unique_ptr<const Utility> utility = UtilityOfTrials(expected, all, {}, models, random);
  return {Acquisition(std::move(models), static_cast<std::size_t>(objectives), std::move(utility)),
          known};
}

}  // namespace espalier::samplers::gp
