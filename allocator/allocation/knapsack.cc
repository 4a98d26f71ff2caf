#include "allocator/allocation/knapsack.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <tuple>

namespace espalier {

namespace {

using Items = std::span<const std::vector<KnapsackChoice>>;

constexpr double kWorthless = -std::numeric_limits<double>::infinity();
constexpr int kPriceSteps = 60;

// best[c]: the greatest value of the items so far on at most c slots beyond their smallest choices.
std::vector<int> SolveExactly(Items items, int spare) {
  const auto width = static_cast<std::size_t>(spare) + 1;
  std::vector<double> best(width, 0.0);
  std::vector<double> next(width);
  std::vector<std::uint16_t> chosen(items.size() * width);
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::fill(next.begin(), next.end(), kWorthless);
    std::uint16_t* row = &chosen[i * width];
    const int least = items[i].front().slots;
    for (std::size_t k = 0; k < items[i].size(); ++k) {
      const int more = items[i][k].slots - least;
      if (more > spare) break;
      const double value = items[i][k].value;
      for (auto c = static_cast<std::size_t>(more); c < width; ++c) {
        const double sum = best[c - static_cast<std::size_t>(more)] + value;
        if (sum <= next[c]) continue;
        next[c] = sum;
        row[c] = static_cast<std::uint16_t>(k);
      }
    }
    best.swap(next);
  }
  std::vector<int> solution(items.size());
  auto left = width - 1;
  for (std::size_t i = items.size(); i-- > 0;) {
    const std::uint16_t k = chosen[i * width + left];
    solution[i] = k;
    left -= static_cast<std::size_t>(items[i][k].slots - items[i].front().slots);
  }
  return solution;
}

// The best choice of each item at a price a slot; of equals the smallest. Returns the slots.
std::int64_t ChooseAt(Items items, double price, std::vector<int>& solution) {
  std::int64_t slots = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    double best = kWorthless;
    for (std::size_t k = 0; k < items[i].size(); ++k) {
      const double net = items[i][k].value - price * items[i][k].slots;
      if (net <= best) continue;
      best = net;
      solution[i] = static_cast<int>(k);
    }
    slots += items[i][static_cast<std::size_t>(solution[i])].slots;
  }
  return slots;
}

// The larger choice with the greatest gain a slot that still fits.
std::optional<std::pair<double, int>> BestUpgrade(const std::vector<KnapsackChoice>& choices,
                                                  int from, std::int64_t room) {
  std::optional<std::pair<double, int>> best;
  const KnapsackChoice& now = choices[static_cast<std::size_t>(from)];
  for (std::size_t k = static_cast<std::size_t>(from) + 1; k < choices.size(); ++k) {
    const int more = choices[k].slots - now.slots;
    if (more > room) break;
    const double gain = (choices[k].value - now.value) / more;
    if (gain > 0 && (!best || gain > best->first)) best = {gain, static_cast<int>(k)};
  }
  return best;
}

void GiveOutRest(Items items, std::int64_t room, std::vector<int>& solution) {
  std::priority_queue<std::tuple<double, std::size_t, int>> upgrades;
  const auto offer = [&](std::size_t i) {
    if (auto up = BestUpgrade(items[i], solution[i], room)) {
      upgrades.emplace(up->first, items.size() - i, up->second);
    }
  };
  for (std::size_t i = 0; i < items.size(); ++i) offer(i);
  while (!upgrades.empty() && room > 0) {
    const auto [gain, turned, k] = upgrades.top();
    upgrades.pop();
    const std::size_t i = items.size() - turned;
    const auto slots_of = [&](int at) { return items[i][static_cast<std::size_t>(at)].slots; };
    const int more = slots_of(k) - slots_of(solution[i]);
    if (more > 0 && more <= room) {
      room -= more;
      solution[i] = k;
    }
    offer(i);
  }
}

std::vector<int> SolveByPrice(Items items, int capacity) {
  double high = 1e-12;
  for (const std::vector<KnapsackChoice>& choices : items) {
    for (std::size_t k = 1; k < choices.size(); ++k) {
      high = std::max(high, (choices[k].value - choices.front().value) /
                                (choices[k].slots - choices.front().slots));
    }
  }
  std::vector<int> solution(items.size(), 0);
  std::vector<int> fitting(items.size(), 0);
  std::int64_t used = ChooseAt(items, 0, solution);
  if (used <= capacity) return solution;
  double low = 0;
  high *= 1 + 1e-9;
  used = ChooseAt(items, high, fitting);
  for (int step = 0; step < kPriceSteps && used != capacity && high - low > 1e-12 * high; ++step) {
    const double price = (low + high) / 2;
    const std::int64_t slots = ChooseAt(items, price, solution);
    if (slots > capacity) {
      low = price;
    } else {
      high = price;
      used = slots;
      fitting = solution;
    }
  }
  GiveOutRest(items, capacity - used, fitting);
  return fitting;
}

}  // namespace

std::optional<std::vector<int>> SolveKnapsack(Items items, int capacity) {
  std::int64_t least = 0;
  double choices = 0;
  for (const std::vector<KnapsackChoice>& item : items) {
    least += item.front().slots;
    choices += static_cast<double>(item.size());
  }
  if (least > capacity) return std::nullopt;
  const int spare = capacity - static_cast<int>(least);
  if (choices * spare <= kKnapsackSteps) return SolveExactly(items, spare);
  return SolveByPrice(items, capacity);
}

}  // namespace espalier
