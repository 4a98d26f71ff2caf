#include "tuner/core/pruners/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "search_spaces/gaussian.h"

namespace espalier {

namespace {

constexpr std::size_t kMostExact = 50;
constexpr std::size_t kMostExactWithTies = 13;

struct SignedRanks {
  std::vector<std::size_t> doubled;  // of the differences that are not 0, twice each rank
  double positive = 0;               // sum of the ranks above 0, with half of those at 0
  std::size_t twice_above = 0;       // twice the sum of the ranks above 0 alone
  bool ties = false;                 // sizes that are equal, or zeros
  double tied = 0;                   // sum of t^3 - t over sizes that t differences have
};

SignedRanks RanksOf(const std::vector<double>& differences) {
  std::vector<std::size_t> order(differences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(differences[a]) < std::abs(differences[b]);
  });
  SignedRanks ranks;
  for (std::size_t from = 0, to = 0; from < order.size(); from = to) {
    const double size = std::abs(differences[order[from]]);
    while (to < order.size() && std::abs(differences[order[to]]) == size) ++to;
    const std::size_t twice = from + 1 + to;  // ranks from + 1 to `to`, their mean twice
    const auto equal = static_cast<double>(to - from);
    ranks.ties = ranks.ties || to - from > 1 || size == 0;
    ranks.tied += equal * equal * equal - equal;
    for (std::size_t i = from; i < to; ++i) {
      const double difference = differences[order[i]];
      const double rank = static_cast<double>(twice) / 2;
      if (difference == 0) {
        ranks.positive += rank / 2;
        continue;
      }
      ranks.doubled.push_back(twice);
      if (difference < 0) continue;
      ranks.positive += rank;
      ranks.twice_above += twice;
    }
  }
  return ranks;
}

// The share of all ways to give the ranks signs with as large a sum of the positive ones.
double ExactProbability(const SignedRanks& ranks) {
  const std::size_t sum =
      std::accumulate(ranks.doubled.begin(), ranks.doubled.end(), std::size_t{});
  std::vector<double> ways(sum + 1, 0);  // up to 2^50 together: exact
  ways[0] = 1;
  for (const std::size_t rank : ranks.doubled) {
    for (std::size_t s = sum; s >= rank; --s) ways[s] += ways[s - rank];
  }
  const auto from = ways.begin() + static_cast<std::ptrdiff_t>(ranks.twice_above);
  const double all = std::ldexp(1, static_cast<int>(ranks.doubled.size()));
  return std::accumulate(from, ways.end(), 0.0) / all;
}

}  // namespace

double SignedRankProbability(const std::vector<double>& differences) {
  const SignedRanks ranks = RanksOf(differences);
  if (differences.size() <= (ranks.ties ? kMostExactWithTies : kMostExact)) {
    return ExactProbability(ranks);
  }
  const auto n = static_cast<double>(differences.size());
  const double mean = n * (n + 1) / 4;
  const double variance = (n * (n + 1) * (2 * n + 1) - ranks.tied / 2) / 24;
  return NormalCdf((mean - ranks.positive) / std::sqrt(variance));
}

}  // namespace espalier
