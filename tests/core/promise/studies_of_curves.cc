#include "tests/core/promise/studies_of_curves.h"

#include <algorithm>
#include <cmath>

#include "tuner/simulator/poolbench.h"

namespace espalier {

namespace {

WholeCurves DrawPoolbench(std::uint64_t seed, int trials) {
  Random random(seed);
  WholeCurves whole;
  for (int i = 0; i < trials; ++i) whole.push_back(Poolbench().Errors(SamplePoolbench(random)));
  return whole;
}

std::vector<double> NoisyPowerLaw(Random& random, int steps, double least_power, double noise) {
  const double end = random.Uniform(0.1, 0.4);
  const double gain = random.Uniform(0.3, 1.0);
  const double power = random.Uniform(least_power, 1.2);
  std::vector<double> values;
  for (int s = 1; s <= steps; ++s) {
    values.push_back(end + gain * std::pow(s, -power) + noise * random.Normal());
  }
  return values;
}

WholeCurves DrawPowerLaws(std::uint64_t seed, int trials) {
  Random random(seed);
  WholeCurves whole;
  for (int i = 0; i < trials; ++i) whole.push_back(NoisyPowerLaw(random, 50, 0.2, 0.01));
  return whole;
}

WholeCurves DrawPlateaus(std::uint64_t seed, int trials) {
  Random random(seed);
  WholeCurves whole(static_cast<std::size_t>(trials));
  for (std::vector<double>& values : whole) {
    const double end = random.Uniform(0.2, 0.4);
    const double gain = random.Uniform(0.1, 0.5);
    const double time = random.Uniform(1, 6);
    for (int s = 1; s <= 40; ++s) {
      values.push_back(end + gain * std::exp(-s / time) + 0.04 * random.Normal());
    }
  }
  return whole;
}

WholeCurves DrawDiverging(std::uint64_t seed, int trials) {
  Random random(seed);
  WholeCurves whole;
  for (int i = 0; i < trials; ++i) {
    std::vector<double>& values = whole.emplace_back(NoisyPowerLaw(random, 40, 0.3, 0.01));
    if (random.Below(4) != 0) continue;
    for (std::size_t s = random.Below(40); s < values.size(); ++s) {
      values[s] = s % 7 == 0 ? std::nan("") : std::exp(static_cast<double>(s));
    }
  }
  return whole;
}

WholeCurves DrawDropping(std::uint64_t seed, int trials) {
  Random random(seed);
  WholeCurves whole;
  for (int i = 0; i < trials; ++i) {
    std::vector<double>& values = whole.emplace_back(NoisyPowerLaw(random, 60, 0.3, 0.005));
    const double drop = random.Uniform(0.02, 0.1);
    for (std::size_t s = 0; s < 30; ++s) values[s] += drop;
  }
  return whole;
}

// How many points each trial keeps when the best third goes on at steps 1, 3, 9, ...
std::vector<std::size_t> Thin(const WholeCurves& whole) {
  std::vector<std::size_t> kept(whole.size(), whole.front().size());
  for (std::size_t rung = 1; rung < whole.front().size(); rung *= 3) {
    std::vector<std::pair<double, std::size_t>> there;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const double value = whole[i][rung - 1];
      if (kept[i] > rung) there.emplace_back(std::isnan(value) ? HUGE_VAL : value, i);
    }
    std::sort(there.begin(), there.end());
    for (std::size_t r = there.size() / 3 + 1; r < there.size(); ++r) kept[there[r].second] = rung;
  }
  return kept;
}

}  // namespace

const std::vector<CurveFamily>& CurveFamilies() {
  static const std::vector<CurveFamily> families = {
      {"poolbench", DrawPoolbench, static_cast<int>(kPoolbenchEpochs)},
      {"power laws", DrawPowerLaws, 50},
      {"plateaus", DrawPlateaus, 40},
      {"diverging", DrawDiverging, 40},
      {"dropping", DrawDropping, 60}};
  return families;
}

PartialStudy::PartialStudy(const WholeCurves& whole, Seen seen, Random& random) {
  const std::size_t steps = whole.front().size();
  std::vector<std::size_t> kept(whole.size(), steps);
  if (seen == Seen::kTogether) kept.assign(whole.size(), 1 + random.Below(steps * 2 / 3));
  if (seen == Seen::kThinned) kept = Thin(whole);
  double best_value = HUGE_VAL;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool complete = seen == Seen::kSpread && i % 2 == 0;
    const bool stopped = kept[i] < steps && seen == Seen::kThinned;
    if (!complete && kept[i] == steps) kept[i] = 1 + random.Below(steps - 1);
    std::vector<IntermediateValue>& points = points_.emplace_back(kept[i]);
    for (std::size_t s = 0; s < kept[i]; ++s) {
      points[s].step = static_cast<std::int64_t>(s) + 1;
      points[s].value = whole[i][s];
    }
    if (!stopped && whole[i].back() < best_value) {
      best_ = i;
      best_value = whole[i].back();
    }
    Curve& curve = curves_.emplace_back();
    curve.trial_number = static_cast<std::int64_t>(i);
    curve.ended = complete || stopped;
    curve.complete = complete;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) curves_[i].points = points_[i];
}

}  // namespace espalier
