#include "tuner/core/promise/promise.h"

#include <cmath>
#include <cstddef>

#include "tuner/core/promise/continuation.h"
#include "tuner/core/promise/top_k.h"

namespace espalier {

namespace {

bool CanEndWell(const Curve& curve) {
  if (curve.ended && !curve.complete) return false;
  if (curve.points.empty()) return !curve.ended;
  return std::isfinite(curve.points.back().value);
}

}  // namespace

std::vector<double> Promise(Direction direction, std::span<const Curve> curves,
                            const PromiseOptions& options) {
  const Continuation continuation(direction, curves, options.max_step);
  std::vector<std::size_t> rivals;
  std::vector<Forecast> ends;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    if (!CanEndWell(curve)) continue;
    rivals.push_back(i);
    if (curve.points.empty()) {
      // Before the first report of all, every trial is the same.
      ends.push_back(continuation.empty() ? Forecast{0, 1} : continuation.Prior());
      continue;
    }
    const IntermediateValue& last = curve.points.back();
    if (curve.complete) {
      ends.push_back(continuation.Certain(last.value));
    } else {
      ends.push_back(continuation.From(last.step, last.value));
    }
  }
  const std::vector<double> among = TopKProbability(ends, options.best_k);
  std::vector<double> promise(curves.size(), 0.0);
  for (std::size_t r = 0; r < rivals.size(); ++r) promise[rivals[r]] = among[r];
  return promise;
}

}  // namespace espalier
