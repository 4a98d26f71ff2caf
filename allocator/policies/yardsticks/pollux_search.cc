#include "allocator/policies/yardsticks/pollux_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "allocator/pool/speedup.h"

namespace espalier {

namespace {

constexpr double kReset = 0.1;     // of a row to what it is now
constexpr double kThinned = 0.1;   // of a row to lose cells
constexpr double kCellLost = 0.1;  // of a cell of such a row
constexpr int kMostNodes = 16;     // that one job may span

// Calls `hit` with each of 0 to n - 1 with probability p, in time proportional to the hits.
template <typename Hit>
void ForEachHit(std::size_t n, double p, Random& random, Hit hit) {
  if (p >= 1) {
    for (std::size_t i = 0; i < n; ++i) hit(i);
    return;
  }
  const double scale = 1.0 / std::log1p(-p);
  for (double at = 0;; at += 1) {
    at += std::floor(std::log(1.0 - random.Uniform()) * scale);
    if (!(at < static_cast<double>(n))) return;
    hit(static_cast<std::size_t>(at));
  }
}

}  // namespace

PolluxSearch::PolluxSearch(const Board& board, const Pool& pool,
                           const PolluxFitnessOptions& options)
    : objectives_(pool, options) {
  std::vector<const NodeCapacity*> nodes;
  for (const NodeCapacity& node : pool.nodes) nodes.push_back(&node);
  std::sort(nodes.begin(), nodes.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  std::map<SlotKind, int> types;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const int type = types.emplace(KindOf(*nodes[n]), types.size()).first->second;
    nodes_.push_back({board.free_on(n), type, nodes[n]->draining});
  }
  types_ = static_cast<int>(types.size());
  for (std::size_t s = 0; s < board.size(); ++s) {
    const Job& job = *board.holder(s).job;
    const int most = job.goodput ? GrowthCap(job) : std::max(MinSlots(job), board.holder(s).total);
    rows_.push_back({.holder = s,
                     .job = static_cast<std::size_t>(&job - pool.jobs.data()),
                     .least = MinSlots(job),
                     .most = std::min(most, MaxSlots(job)),
                     .stays = job.joining});
  }
  std::sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
    const double served_a = pool.jobs[a.job].attained_service;
    const double served_b = pool.jobs[b.job].attained_service;
    return std::tuple(!a.stays, served_a, a.holder) < std::tuple(!b.stays, served_b, b.holder);
  });
  base_.assign(rows() * columns(), 0);
  for (std::size_t r = 0; r < rows(); ++r) {
    for (const Share& share : board.holder(rows_[r].holder).shares) {
      const auto n = static_cast<std::size_t>(share.node);
      base_[r * columns() + n] = static_cast<std::uint16_t>(share.slots);
      nodes_[n].capacity += share.slots;
    }
  }
}

int PolluxSearch::Cap(std::size_t row, std::size_t column) const {
  const Column& node = nodes_[column];
  return node.draining ? base_[row * columns() + column] : node.capacity;
}

// One point between the rows.
void PolluxSearch::Cross(Genome& a, Genome& b, Random& random) {
  const auto cut = static_cast<std::ptrdiff_t>(random.Below(rows()) * columns());
  std::swap_ranges(a.begin(), a.begin() + cut, b.begin());
}

void PolluxSearch::Mutate(Genome& genome, Random& random) {
  const std::size_t width = columns();
  ForEachHit(rows(), kReset, random,
             [&](std::size_t r) { std::copy_n(&base_[r * width], width, &genome[r * width]); });
  ForEachHit(rows(), kThinned, random, [&](std::size_t r) {
    ForEachHit(width, kCellLost, random, [&](std::size_t n) { genome[r * width + n] = 0; });
  });
  left_.resize(width);
  for (std::size_t n = 0; n < width; ++n) left_[n] = nodes_[n].capacity;
  for (std::size_t r = 0; r < rows(); ++r) {
    for (std::size_t n = 0; n < width; ++n) left_[n] -= genome[r * width + n];
  }
  // On a node with room, one job in all and one of those that are there are drawn on average.
  const auto raise = [&](std::size_t r, std::size_t n) {
    std::uint16_t& cell = genome[r * width + n];
    const int cap = Cap(r, n);
    if (cell < cap) {
      cell = static_cast<std::uint16_t>(cell +
                                        random.Below(static_cast<std::uint64_t>(cap - cell) + 1));
    }
  };
  for (std::size_t n = 0; n < width; ++n) {
    if (left_[n] <= 0) continue;
    order_.clear();
    for (std::size_t r = 0; r < rows(); ++r) {
      if (genome[r * width + n] > 0) order_.push_back(r);
    }
    const auto here = order_.size();
    if (here > 0) {
      const double p = 1.0 / static_cast<double>(here);
      ForEachHit(here, p, random, [&](std::size_t i) { raise(order_[i], n); });
    }
    ForEachHit(rows(), 1.0 / static_cast<double>(rows()), random,
               [&](std::size_t r) { raise(r, n); });
  }
}

// The type on which the job has most; of equals the first.
void PolluxSearch::KeepOneType(std::uint16_t* cells) const {
  std::vector<int> held(static_cast<std::size_t>(types_), 0);
  for (std::size_t n = 0; n < columns(); ++n) {
    held[static_cast<std::size_t>(nodes_[n].type)] += cells[n];
  }
  const auto kept = std::max_element(held.begin(), held.end()) - held.begin();
  for (std::size_t n = 0; n < columns(); ++n) {
    if (nodes_[n].type != kept) cells[n] = 0;
  }
}

// Nodes are passed in random order until the job has what it may have.
void PolluxSearch::CapReplicas(std::uint16_t* cells, int most, Random& random) {
  order_.clear();
  int total = 0;
  for (std::size_t n = 0; n < columns(); ++n) {
    if (cells[n] == 0) continue;
    order_.push_back(n);
    total += cells[n];
  }
  if (total <= most && order_.size() <= kMostNodes) return;
  int nodes = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    std::swap(order_[i], order_[i + random.Below(order_.size() - i)]);
    std::uint16_t& cell = cells[order_[i]];
    cell = nodes < kMostNodes ? static_cast<std::uint16_t>(std::min<int>(cell, most)) : 0;
    most -= cell;
    nodes += cell > 0 ? 1 : 0;
  }
}

void PolluxSearch::RepairRow(std::size_t row, std::uint16_t* cells, Random& random) {
  const std::size_t width = columns();
  if (rows_[row].stays) {
    std::copy_n(&base_[row * width], width, cells);
  } else if (types_ > 1) {
    KeepOneType(cells);
  }
  std::size_t nodes = 0;
  for (std::size_t n = 0; n < width; ++n) {
    if (nodes_[n].draining) {
      cells[n] = static_cast<std::uint16_t>(std::min<int>(cells[n], Cap(row, n)));
    }
    nodes += cells[n] > 0 ? 1 : 0;
  }
  // A node carries one job that spans nodes: the first.
  if (nodes > 1) {
    for (std::size_t n = 0; n < width; ++n) {
      if (cells[n] == 0) continue;
      if (spanned_[n] != 0) cells[n] = 0;
      spanned_[n] = 1;
    }
  }
  if (!rows_[row].stays) CapReplicas(cells, rows_[row].most, random);
  int total = 0;
  for (std::size_t n = 0; n < width; ++n) {
    cells[n] = static_cast<std::uint16_t>(std::min<int>(cells[n], left_[n]));
    left_[n] -= cells[n];
    total += cells[n];
  }
  if (total >= rows_[row].least || rows_[row].stays) return;
  for (std::size_t n = 0; n < width; ++n) left_[n] += cells[n];
  std::fill_n(cells, width, 0);
}

void PolluxSearch::Repair(Genome& genome, Random& random) {
  left_.resize(columns());
  for (std::size_t n = 0; n < columns(); ++n) left_[n] = nodes_[n].capacity;
  spanned_.assign(columns(), 0);
  for (std::size_t r = 0; r < rows(); ++r) RepairRow(r, &genome[r * columns()], random);
}

Costs PolluxSearch::Evaluate(const Genome& genome) {
  const std::size_t width = columns();
  speedups_.resize(rows());
  spanned_.assign(width, 0);  // here: in use
  double sum = 0;
  for (std::size_t r = 0; r < rows(); ++r) {
    const std::uint16_t* cells = &genome[r * width];
    int replicas = 0;
    int nodes = 0;
    bool moved = false;
    for (std::size_t n = 0; n < width; ++n) {
      replicas += cells[n];
      nodes += cells[n] > 0 ? 1 : 0;
      spanned_[n] = static_cast<char>(spanned_[n] | (cells[n] > 0 ? 1 : 0));
      moved |= cells[n] != base_[r * width + n];
    }
    const double speedup = objectives_.Speedup(rows_[r].job, nodes, replicas);
    sum += speedup;
    speedups_[r] =
        speedup * objectives_.Scale() * (moved ? objectives_.RestartFactor(rows_[r].job) : 1.0);
  }
  int in_use = 0;
  for (std::size_t n = 0; n < width; ++n) in_use += spanned_[n] != 0 ? nodes_[n].capacity : 0;
  const double utility = in_use > 0 ? sum / in_use : 0.0;
  return {-objectives_.Mean(speedups_), -utility};
}

}  // namespace espalier
