#include "tuner/core/samplers/tpe/before_trials.h"

#include <algorithm>
#include <cmath>

#include "tuner/core/samplers/before.h"

namespace espalier::samplers {
namespace {

// How many of so many are left beside so many trials of the study's own.
std::size_t Left(std::size_t of, std::size_t own) {
  constexpr double kHalf = 20;  // beside which half are
  const double share = kHalf / (kHalf + static_cast<double>(own));
  return static_cast<std::size_t>(std::floor(share * static_cast<double>(of) + 0.5));
}

}  // namespace

TrialsWithBefore::TrialsWithBefore(const SamplerInput& input, const SplitSettings& settings)
    : own_(input.ended), split_(SplitTrials(input, settings)), completed_(CompletedBefore(input)) {
  const std::size_t all = completed_.size();
  if (all == 0) return;
  const auto share = static_cast<std::size_t>(std::ceil(settings.gamma * static_cast<double>(all)));
  const std::size_t most = input.objectives() == 1 ? settings.most_good : all;
  const std::size_t good = std::min({share, most, all});
  std::vector<TpeSplit::Side> sides;
  const auto take = [&](std::size_t trial, TpeSplit::Side side) {
    const auto number = static_cast<std::int64_t>(trial) - static_cast<std::int64_t>(all);
    with_.push_back({.trial_number = number, .parameters = &completed_[trial]});
    sides.push_back(side);
  };
  for (std::size_t i = 0; i < Left(good, own_.size()); ++i) take(i, TpeSplit::Side::kGood);
  const std::size_t bad = all - good;
  const std::size_t kept = Left(bad, own_.size());
  for (std::size_t i = 0; i < kept; ++i) {
    take(good + (2 * i + 1) * bad / (2 * kept), TpeSplit::Side::kBad);
  }
  if (sides.empty()) return;
  with_.insert(with_.end(), own_.begin(), own_.end());
  split_.sides.insert(split_.sides.begin(), sides.begin(), sides.end());
}

}  // namespace espalier::samplers
