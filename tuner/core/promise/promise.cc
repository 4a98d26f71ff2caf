#include "tuner/core/promise/promise.h"

#include <algorithm>
#include <cmath>

#include "tuner/core/promise/continuation.h"
#include "tuner/core/promise/extrapolation.h"
#include "tuner/core/promise/front.h"
#include "tuner/core/promise/top_k.h"

namespace espalier {

namespace {

// No forecast is surer than that, and a trial that runs is worth a slot that no other can use.
constexpr double kLeast = 1e-6;
constexpr std::size_t kMostLearnt = 48;  // curves that the extrapolation learns from

bool MayEndWell(std::span<const IntermediateValue> points, bool ended) {
  return points.empty() ? !ended : std::isfinite(points.back().value);
}

bool CanEndWell(const Curve& curve) {
  if (curve.ended && !curve.complete) return false;
  return MayEndWell(curve.points, curve.ended) &&
         std::ranges::all_of(curve.others, [&curve](const auto& points) {
           return MayEndWell(points, curve.ended);
         });
}

std::vector<CurvePoint> PointsOf(const Curve& curve, const Continuation& study) {
  std::vector<CurvePoint> points;
  points.reserve(curve.points.size());
  for (const IntermediateValue& point : curve.points) {
    if (!std::isfinite(point.value)) continue;
    points.push_back({static_cast<double>(point.step), study.CostOf(point.value), 1});
  }
  return Condense(points);
}

// The curves to learn from: the longest, and an even choice of the others.
std::vector<std::vector<CurvePoint>> CurvesToLearnFrom(std::span<const Curve> curves,
                                                       const Continuation& study) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (!curves[i].points.empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return curves[a].points.size() > curves[b].points.size();
  });
  const std::size_t kept = std::min(order.size(), kMostLearnt);
  const std::size_t longest = kept / 2;
  std::vector<std::vector<CurvePoint>> chosen;
  for (std::size_t i = 0; i < kept; ++i) {
    std::size_t at = i;
    if (i >= longest) at += (i - longest) * (order.size() - kept) / (kept - longest);
    std::vector<CurvePoint> points = PointsOf(curves[order[at]], study);
    if (!points.empty()) chosen.push_back(std::move(points));
  }
  return chosen;
}

// The mixture of two forecasts, each with the weight of its precision.
Forecast Join(const Forecast& a, const Forecast& b) {
  const double sum = a.variance + b.variance;
  const double share = sum > 0 ? b.variance / sum : 0.5;
  const double apart = a.mean - b.mean;
  return {share * a.mean + (1 - share) * b.mean,
          share * a.variance + (1 - share) * b.variance + share * (1 - share) * apart * apart};
}

// The curves of a further objective, as if they were those of the first.
std::vector<Curve> CurvesOf(std::span<const Curve> curves, std::size_t other) {
  std::vector<Curve> result(curves.begin(), curves.end());
  for (Curve& curve : result) {
    curve.points =
        other < curve.others.size() ? curve.others[other] : std::span<const IntermediateValue>();
    curve.others = {};
  }
  return result;
}

std::vector<double> OnTheFront(Direction direction, std::span<const Curve> curves,
                               std::span<const std::size_t> rivals, const PromiseOptions& options) {
  CostsByObjective ends{ForecastEnds(direction, curves, rivals, options)};
  for (std::size_t k = 0; k < options.other_directions.size(); ++k) {
    ends.push_back(ForecastEnds(options.other_directions[k], CurvesOf(curves, k), rivals, options));
  }
  return FrontProbability(ends);
}

}  // namespace

std::vector<Forecast> ForecastEnds(Direction direction, std::span<const Curve> curves,
                                   std::span<const std::size_t> wanted,
                                   const PromiseOptions& options) {
  const Continuation continuation(direction, curves, options.max_step);
  // Before the first report of all, every trial is the same.
  if (continuation.empty()) return std::vector<Forecast>(wanted.size(), Forecast{0, 1});
  double first = HUGE_VAL;
  auto last = static_cast<double>(options.max_step);
  for (const Curve& curve : curves) {
    if (curve.points.empty()) continue;
    first = std::min(first, static_cast<double>(curve.points.front().step));
    last = std::max(last, static_cast<double>(curve.points.back().step));
  }
  Extrapolation extrapolation(CurvesToLearnFrom(curves, continuation), std::max(first, 0.0), last,
                              continuation.scale());
  std::vector<Forecast> ends;
  ends.reserve(wanted.size());
  for (const std::size_t i : wanted) {
    const Curve& curve = curves[i];
    if (curve.points.empty()) {
      ends.push_back(extrapolation.Prior());
    } else if (curve.complete) {
      ends.push_back(continuation.Certain(curve.points.back().value));
    } else {
      const Extrapolation::Ending own = extrapolation.End(PointsOf(curve, continuation));
      ends.push_back(Join(continuation.From(curve.points.back().step, own.now), own.end));
    }
  }
  return ends;
}

std::vector<double> Promise(Direction direction, std::span<const Curve> curves,
                            const PromiseOptions& options) {
  std::vector<std::size_t> rivals;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (!curves[i].breaks && CanEndWell(curves[i])) rivals.push_back(i);
  }
  const std::vector<double> among =
      options.other_directions.empty()
          ? TopKProbability(ForecastEnds(direction, curves, rivals, options), options.best_k)
          : OnTheFront(direction, curves, rivals, options);
  std::vector<double> promise(curves.size(), 0.0);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    if (curves[i].breaks && CanEndWell(curves[i])) promise[i] = kLeast;
  }
  for (std::size_t r = 0; r < rivals.size(); ++r) {
    const double least = curves[rivals[r]].ended ? 0 : kLeast;
    promise[rivals[r]] = std::max(among[r], least);
  }
  return promise;
}

}  // namespace espalier
