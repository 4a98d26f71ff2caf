#include "allocator/policies/yardsticks/sia_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "allocator/allocation/knapsack.h"

namespace espalier {

namespace {

constexpr double kLeastGoodput = 1e-3;  // relative to the row's least; keeps values finite
constexpr int kPriceRounds = 200;

// Counts of slots worth trying on nodes of one size: the present one, the least, powers of two
// within a node and whole nodes.
std::vector<int> Counts(int node_slots, int least, int most, int present) {
  std::vector<int> counts{least};
  for (int k = 1; k <= node_slots; k *= 2) counts.push_back(k);
  for (int k = node_slots; k <= most; k += node_slots) counts.push_back(k);
  if (present > 0) counts.push_back(present);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::erase_if(counts, [&](int k) { return k < least || k > most; });
  return counts;
}

double RestartFactor(const Job& job) {
  const double cost_s = std::max(0.0, job.resize_cost_s);
  const double age_s = std::max(job.age_s, 1e-9);
  return std::max(0.0, (age_s - job.resizes * cost_s) / (age_s + cost_s));
}

int TotalOf(const std::vector<SiaRow>& rows, const std::vector<int>& chosen, int type) {
  int slots = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (chosen[i] < 0) continue;
    const SiaEntry& entry = rows[i][static_cast<std::size_t>(chosen[i])];
    slots += entry.type == type ? entry.slots : 0;
  }
  return slots;
}

// The entry worth most at these prices of a slot; -1 where none is worth its price.
int BestAt(const SiaRow& row, const std::vector<double>& prices) {
  int best = -1;
  double most = 0;
  for (std::size_t e = 0; e < row.size(); ++e) {
    const double value =
        row[e].value - prices[static_cast<std::size_t>(row[e].type)] * row[e].slots;
    if (value > most) {
      most = value;
      best = static_cast<int>(e);
    }
  }
  return best;
}

// Prices at which about as many slots of each type are wanted as there are.
std::vector<double> Prices(const std::vector<SiaRow>& rows, const std::vector<int>& capacity) {
  std::vector<double> prices(capacity.size(), 0.0);
  for (int round = 0; round < kPriceRounds; ++round) {
    std::vector<int> wanted(capacity.size(), 0);
    for (const SiaRow& row : rows) {
      const int best = BestAt(row, prices);
      if (best < 0) continue;
      const SiaEntry& entry = row[static_cast<std::size_t>(best)];
      wanted[static_cast<std::size_t>(entry.type)] += entry.slots;
    }
    for (std::size_t t = 0; t < prices.size(); ++t) {
      if (capacity[t] == 0) continue;
      const double excess = static_cast<double>(wanted[t] - capacity[t]) / capacity[t];
      prices[t] = std::max(0.0, prices[t] + 0.5 / (1 + round) * std::clamp(excess, -1.0, 1.0));
    }
  }
  return prices;
}

// Within one type: the best choice of its entries for the rows that go there.
void ChooseWithin(const std::vector<SiaRow>& rows, const std::vector<std::size_t>& members,
                  int type, int capacity, std::vector<int>& chosen) {
  std::vector<std::vector<KnapsackChoice>> items;
  std::vector<std::vector<int>> entries;
  for (const std::size_t i : members) {
    std::vector<KnapsackChoice>& choices = items.emplace_back(1);  // nothing
    std::vector<int>& of = entries.emplace_back(1, -1);
    for (std::size_t e = 0; e < rows[i].size(); ++e) {
      if (rows[i][e].type != type) continue;
      choices.push_back({rows[i][e].slots, rows[i][e].value});
      of.push_back(static_cast<int>(e));
    }
  }
  const auto solved = SolveKnapsack(items, capacity);
  for (std::size_t m = 0; m < members.size(); ++m) {
    chosen[members[m]] = entries[m][static_cast<std::size_t>((*solved)[m])];
  }
}

}  // namespace

SiaRow SiaRowOf(Board& board, std::size_t j, double fairness, double lambda) {
  const Holder& holder = board.holder(j);
  const Job& job = *holder.job;
  const int present_type = board.type_of(holder.shares);
  std::map<int, int> node_slots;
  for (std::size_t n = 0; n < board.node_count(); ++n) {
    if (board.draining(n)) continue;
    int& most = node_slots[board.type_of(n)];
    most = std::max(most, board.capacity_of(n));
  }
  const int most = job.goodput ? GrowthCap(job) : MinSlots(job);
  SiaRow row;
  double least = 0;
  for (const auto& [type, size] : node_slots) {
    if (size == 0) continue;
    const int present = type == present_type ? holder.total : 0;
    for (const int slots : Counts(size, MinSlots(job), most, present)) {
      SiaEntry entry{.type = type, .nodes = (slots + size - 1) / size, .slots = slots};
      if (slots == present) entry.nodes = static_cast<int>(holder.shares.size());
      entry.value =
          holder.speedup->At(entry.nodes, slots, board.types()[static_cast<std::size_t>(type)]);
      if (!(entry.value > 0)) continue;
      if (least == 0 || entry.value < least) least = entry.value;
      row.push_back(entry);
    }
  }
  for (SiaEntry& entry : row) {
    double goodput = entry.value / least;
    const bool stays = entry.type == present_type && entry.slots == holder.total;
    if (!holder.shares.empty() && !stays) goodput *= RestartFactor(job);
    entry.value = lambda - std::pow(std::max(goodput, kLeastGoodput), fairness);
  }
  return row;
}

std::vector<int> ChooseEntries(const std::vector<SiaRow>& rows, const std::vector<int>& capacity) {
  std::vector<int> chosen(rows.size(), -1);
  const bool several = capacity.size() > 1;
  const std::vector<double> prices =
      several ? Prices(rows, capacity) : std::vector<double>(capacity.size(), 0.0);
  std::vector<std::vector<std::size_t>> members(capacity.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].empty()) continue;
    const int best = several ? BestAt(rows[i], prices) : 0;
    if (best >= 0) {
      const SiaEntry& entry = rows[i][static_cast<std::size_t>(best)];
      members[static_cast<std::size_t>(entry.type)].push_back(i);
    }
  }
  for (std::size_t t = 0; t < capacity.size(); ++t) {
    ChooseWithin(rows, members[t], static_cast<int>(t), capacity[t], chosen);
  }
  if (!several) return chosen;
  // A trial that got nothing, or less than it could have of what is left on some type, takes that.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int had = std::exchange(chosen[i], -1);
    int best = had;
    double most = had < 0 ? 0 : rows[i][static_cast<std::size_t>(had)].value;
    for (std::size_t e = 0; e < rows[i].size(); ++e) {
      const SiaEntry& entry = rows[i][e];
      const int left =
          capacity[static_cast<std::size_t>(entry.type)] - TotalOf(rows, chosen, entry.type);
      if (entry.slots > left || entry.value <= most) continue;
      most = entry.value;
      best = static_cast<int>(e);
    }
    chosen[i] = best;
  }
  return chosen;
}

}  // namespace espalier
