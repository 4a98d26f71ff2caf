#include "tuner/core/promise/front.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>

#include "tuner/core/fronts/fronts.h"

namespace espalier {

namespace {

constexpr std::size_t kMostRivals = 128;  // that are uncertain
constexpr std::size_t kMostDraws = 64;    // of a trial's own end
constexpr std::size_t kLeastDraws = 16;
constexpr std::size_t kDrawsOfAll = 4096;
constexpr double kFarthest = 6;  // standard deviations beyond which nothing happens

// The standard normal distribution function, read off a table: half a million are needed at once.
class NormalTable {
 public:
  NormalTable() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double z = (static_cast<double>(i) / kPerUnit) - kFarthest;
      values_[i] = 0.5 * std::erfc(-z / std::sqrt(2.0));
    }
  }
  double At(double z) const {
    if (z <= -kFarthest) return 0;
    if (z >= kFarthest) return 1;
    const double at = (z + kFarthest) * kPerUnit;
    const auto i = static_cast<std::size_t>(at);
    const double share = at - static_cast<double>(i);
    return values_[i] + share * (values_[i + 1] - values_[i]);
  }
  // The inverse, of a share in (0, 1).
  double Quantile(double share) const {
    const auto above = std::upper_bound(values_.begin(), values_.end(), share);
    if (above == values_.begin()) return -kFarthest;
    if (above == values_.end()) return kFarthest;
    const auto i = static_cast<std::size_t>(above - values_.begin()) - 1;
    const double part = (share - values_[i]) / (values_[i + 1] - values_[i]);
    return (static_cast<double>(i) + part) / kPerUnit - kFarthest;
  }

 private:
  static constexpr double kPerUnit = 64;
  std::array<double, static_cast<std::size_t>(2 * kFarthest * kPerUnit) + 2> values_{};
};

const NormalTable& Normal() {
  static const NormalTable table;
  return table;
}

// Standard normal points, `objectives` numbers each, that fill space evenly: multiples of the
// inverse powers of the generalised golden ratio, modulo 1 (Roberts 2018).
std::vector<double> EvenNormals(std::size_t draws, std::size_t objectives) {
  double ratio = 2;  // the root of x^(objectives + 1) = x + 1
  for (int i = 0; i < 64; ++i) {
    ratio = std::pow(1 + ratio, 1.0 / (static_cast<double>(objectives) + 1));
  }
  std::vector<double> normals;
  normals.reserve(draws * objectives);
  for (std::size_t d = 0; d < draws; ++d) {
    double step = 1;
    for (std::size_t k = 0; k < objectives; ++k) {
      step /= ratio;
      double whole = 0;
      const double share = std::modf(0.5 + step * static_cast<double>(d + 1), &whole);
      normals.push_back(Normal().Quantile(share));
    }
  }
  return normals;
}

class Front {
 public:
  explicit Front(const CostsByObjective& costs)
      : costs_(costs),
        trials_(costs.front().size()),
        means_(costs.size()),
        deviations_(costs.size()) {
    for (std::size_t i = 0; i < trials_; ++i) {
      std::vector<double> row;
      for (const std::vector<Forecast>& of : costs) row.push_back(of[i].mean);
      means_.Add(row);
    }
    for (std::size_t k = 0; k < costs.size(); ++k) {
      for (const Forecast& f : costs[k]) deviations_[k].push_back(std::sqrt(f.variance));
    }
    for (std::size_t i = 0; i < trials_; ++i) (IsCertain(i) ? certain_ : open_).push_back(i);
    KeepUndominated();
    ChooseRivals();
    draws_ =
        std::clamp(kDrawsOfAll / std::max<std::size_t>(1, open_.size()), kLeastDraws, kMostDraws);
    normals_ = EvenNormals(draws_, costs.size());
  }

  std::vector<double> Probabilities() const {
    std::vector<double> result(trials_, 0.0);
    for (const std::size_t i : certain_) result[i] = Undominated(i, means_[i]);
    std::vector<double> end(costs_.size());
    for (const std::size_t i : open_) {
      double sum = 0;
      for (std::size_t d = 0; d < draws_; ++d) {
        for (std::size_t k = 0; k < end.size(); ++k) {
          end[k] = means_[i][k] + deviations_[k][i] * normals_[d * end.size() + k];
        }
        sum += Undominated(i, end);
      }
      result[i] = sum / static_cast<double>(draws_);
    }
    return result;
  }

 private:
  bool IsCertain(std::size_t i) const {
    return std::ranges::all_of(costs_, [i](const auto& of) { return of[i].variance <= 0; });
  }

  // Certain trials behind another certain one keep nobody from the front that the other does not.
  void KeepUndominated() {
    std::sort(certain_.begin(), certain_.end(), [this](std::size_t a, std::size_t b) {
      for (const std::vector<Forecast>& of : costs_) {
        if (of[a].mean != of[b].mean) return of[a].mean < of[b].mean;
      }
      return a < b;
    });
    std::vector<std::size_t> front;
    for (const std::size_t i : certain_) {
      if (std::ranges::none_of(front,
                               [&](std::size_t f) { return Dominates(means_[f], means_[i]); })) {
        front.push_back(i);
      }
    }
    certain_ = std::move(front);
  }

  // By how many others' means they are dominated, fewer first.
  void ChooseRivals() {
    rivals_ = open_;
    if (rivals_.size() <= kMostRivals) return;
    std::vector<std::size_t> behind(trials_, 0);
    for (const std::size_t a : open_) {
      for (const std::size_t b : open_) behind[b] += Dominates(means_[a], means_[b]) ? 1 : 0;
    }
    std::stable_sort(rivals_.begin(), rivals_.end(),
                     [&](std::size_t a, std::size_t b) { return behind[a] < behind[b]; });
    rivals_.resize(kMostRivals);
  }

  // The probability that none of the others dominates one that ends there.
  double Undominated(std::size_t trial, std::span<const double> end) const {
    for (const std::size_t c : certain_) {
      if (c != trial && Dominates(means_[c], end)) return 0;
    }
    double none = 1;
    for (const std::size_t r : rivals_) {
      if (r == trial) continue;
      double ahead = 1;
      for (std::size_t k = 0; k < end.size() && ahead > 0; ++k) ahead *= Below(k, r, end[k]);
      none *= 1 - ahead;
      if (none < 1e-9) return 0;
    }
    return none;
  }

  // The probability that the trial's cost in the k-th objective is at most `cost`.
  double Below(std::size_t k, std::size_t trial, double cost) const {
    const double deviation = deviations_[k][trial];
    const double apart = cost - means_[trial][k];
    if (deviation <= 0) return apart >= 0 ? 1 : 0;
    return Normal().At(apart / deviation);
  }

  const CostsByObjective& costs_;
  std::size_t trials_;
  Losses means_;                                 // a row for each trial
  std::vector<std::vector<double>> deviations_;  // by objective, then trial
  std::vector<std::size_t> certain_;             // those that no certain one dominates
  std::vector<std::size_t> open_;                // the uncertain ones
  std::vector<std::size_t> rivals_;              // of these
  std::size_t draws_ = 0;
  std::vector<double> normals_;
};

}  // namespace

std::vector<double> FrontProbability(const CostsByObjective& costs) {
  if (costs.empty() || costs.front().empty()) return {};
  return Front(costs).Probabilities();
}

}  // namespace espalier
