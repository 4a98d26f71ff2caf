#include "allocator/allocation/reallocation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace espalier {

namespace {

constexpr double kOutOfReach = -std::numeric_limits<double>::infinity();
constexpr double kBoundRounding = 1e-9;
constexpr std::size_t kMostStates = 1 << 17;
constexpr std::size_t kMostOptions = 4096;  // of one holder

// One placement of one holder on the nodes.
struct Option {
  std::array<int, kMostReallocated> slots{};  // by node
  int total = 0;
  bool spans = false;
  double worth = 0;
  std::uint32_t step = 0;  // from a state to the next
};

class Reallocation {
 public:
  Reallocation(Board& board, Objective& objective, const std::vector<HolderLimits>& limits,
               std::span<const int> nodes)
      : board_(board), objective_(objective), limits_(limits), nodes_(nodes.begin(), nodes.end()) {
    FindHolders();
  }
  ReallocationResult Solve(Exchange& exchange, double max_steps);

 private:
  void FindHolders();
  bool ListOptions();
  void AddOptions(std::size_t i, Option& option, std::size_t node);
  void BoundRest();
  bool Extend(std::size_t i, const std::vector<double>& best, std::vector<double>& next);
  void Take(Exchange& exchange, std::size_t state);
  Shares SharesOf(const Option& option) const;
  std::size_t Base(std::size_t node) const { return 2 * static_cast<std::size_t>(room_[node] + 1); }

  Board& board_;
  Objective& objective_;
  const std::vector<HolderLimits>& limits_;
  std::vector<int> nodes_;
  std::vector<int> room_;      // by node: free, with what its holders give up
  std::vector<bool> spanned_;  // by node: by a holder that is not divided anew
  int total_room_ = 0;
  std::vector<std::size_t> holders_;
  std::vector<std::vector<Option>> options_;  // by holder
  std::vector<std::size_t> unit_;             // by node, in a state's index
  std::size_t states_ = 1;
  // By holder, then by slots: the most that this holder and those after it could be worth together.
  std::vector<std::vector<double>> bound_;
  double needed_ = 0;
  double steps_ = 0;
  double max_steps_ = 0;
  std::vector<std::uint16_t> chosen_;
};

void Reallocation::FindHolders() {
  const auto at = [this](int node) { return std::find(nodes_.begin(), nodes_.end(), node); };
  for (const int node : nodes_) {
    room_.push_back(std::max(0, board_.free_on(static_cast<std::size_t>(node))));
    spanned_.push_back(false);
  }
  for (std::size_t j = 0; j < board_.size(); ++j) {
    const Shares& shares = board_.holder(j).shares;
    if (shares.empty() && !limits_[j].movable) continue;
    const bool inside = std::all_of(shares.begin(), shares.end(),
                                    [&](const Share& s) { return at(s.node) != nodes_.end(); });
    const bool mine = limits_[j].movable && inside;
    if (mine) holders_.push_back(j);
    for (const Share& s : shares) {
      const auto i = at(s.node);
      if (i == nodes_.end()) continue;
      const auto n = static_cast<std::size_t>(i - nodes_.begin());
      if (mine) {
        room_[n] += s.slots;
      } else if (shares.size() > 1) {
        spanned_[n] = true;
      }
    }
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    total_room_ += room_[i];
    unit_.push_back(states_);
    states_ *= Base(i);
  }
}

Shares Reallocation::SharesOf(const Option& option) const {
  Shares shares;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (option.slots[i] > 0) shares.push_back({nodes_[i], option.slots[i]});
  }
  return shares;
}

void Reallocation::AddOptions(std::size_t i, Option& option, std::size_t node) {
  const std::size_t j = holders_[i];
  if (options_[i].size() > kMostOptions) return;
  if (node == nodes_.size()) {
    if (option.total < limits_[j].least || (option.total == 0 && !objective_.MayPause())) return;
    const Job& job = *board_.holder(j).job;
    if (!FitsSizes(job, option.total)) return;
    const Shares shares = SharesOf(option);
    option.spans = shares.size() > 1;
    if (option.spans && shares != board_.holder(j).shares &&
        board_.MustBeOnOne(j, option.total, board_.type_of(shares))) {
      return;
    }
    option.step = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (option.slots[n] == 0) continue;
      if (option.spans && spanned_[n]) return;
      option.step += static_cast<std::uint32_t>(unit_[n]) *
                     static_cast<std::uint32_t>(2 * option.slots[n] + (option.spans ? 1 : 0));
    }
    option.worth = objective_.WorthOf(board_, j, shares);
    ++steps_;
    options_[i].push_back(option);
    return;
  }
  const int most = std::min({room_[node], limits_[j].most - option.total,
                             board_.most_for(j, static_cast<std::size_t>(nodes_[node]))});
  for (int slots = 0; slots <= most; ++slots) {
    option.slots[node] = slots;
    option.total += slots;
    AddOptions(i, option, node + 1);
    option.total -= slots;
  }
  option.slots[node] = 0;
}

// Every placement; what a holder has now first, so that it stays where nothing else is better.
bool Reallocation::ListOptions() {
  options_.resize(holders_.size());
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    Option option;
    AddOptions(i, option, 0);
    if (options_[i].empty() || options_[i].size() > kMostOptions || steps_ > max_steps_) {
      return false;
    }
    const Shares& now = board_.holder(holders_[i]).shares;
    std::stable_partition(options_[i].begin(), options_[i].end(),
                          [&](const Option& o) { return SharesOf(o) == now; });
  }
  return true;
}

void Reallocation::BoundRest() {
  const auto width = static_cast<std::size_t>(total_room_) + 1;
  bound_.assign(holders_.size() + 1, std::vector<double>(width, kOutOfReach));
  bound_.back().assign(width, 0.0);
  for (std::size_t i = holders_.size(); i-- > 0;) {
    std::vector<double> by_total(width, kOutOfReach);
    for (const Option& o : options_[i]) {
      double& at = by_total[static_cast<std::size_t>(o.total)];
      at = std::max(at, o.worth);
    }
    for (std::size_t t = 0; t < width; ++t) {
      if (by_total[t] == kOutOfReach) continue;
      for (std::size_t c = t; c < width; ++c) {
        bound_[i][c] = std::max(bound_[i][c], by_total[t] + bound_[i + 1][c - t]);
      }
    }
  }
}

bool Reallocation::Extend(std::size_t i, const std::vector<double>& best,
                          std::vector<double>& next) {
  std::uint16_t* chosen = &chosen_[i * states_];
  std::array<int, kMostReallocated> left{};
  std::array<bool, kMostReallocated> spans{};
  for (std::size_t state = 0; state < states_; ++state) {
    if (best[state] == kOutOfReach) continue;
    int room = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const std::size_t digit = state / unit_[n] % Base(n);
      left[n] = room_[n] - static_cast<int>(digit / 2);
      spans[n] = digit % 2 == 1;
      room += left[n];
    }
    if (best[state] + bound_[i][static_cast<std::size_t>(room)] <= needed_) continue;
    steps_ += static_cast<double>(options_[i].size());
    if (steps_ > max_steps_) return false;
    for (std::size_t o = 0; o < options_[i].size(); ++o) {
      const Option& option = options_[i][o];
      if (option.total > room) continue;
      bool fits = true;
      for (std::size_t n = 0; n < nodes_.size() && fits; ++n) {
        fits = option.slots[n] == 0 || (option.slots[n] <= left[n] && !(option.spans && spans[n]));
      }
      const double sum = best[state] + option.worth;
      if (!fits || sum <= next[state + option.step]) continue;
      next[state + option.step] = sum;
      chosen[state + option.step] = static_cast<std::uint16_t>(o);
    }
  }
  return true;
}

void Reallocation::Take(Exchange& exchange, std::size_t state) {
  std::vector<Shares> found(holders_.size());
  for (std::size_t i = holders_.size(); i-- > 0;) {
    const Option& option = options_[i][chosen_[i * states_ + state]];
    found[i] = SharesOf(option);
    state -= option.step;
  }
  for (const std::size_t j : holders_) exchange.Assign(j, {});
  for (std::size_t i = 0; i < holders_.size(); ++i) exchange.Assign(holders_[i], found[i]);
}

ReallocationResult Reallocation::Solve(Exchange& exchange, double max_steps) {
  max_steps_ = max_steps;
  ReallocationResult result;
  if (states_ > kMostStates || holders_.empty() || !ListOptions()) {
    result.complete = holders_.empty();
    result.steps = steps_;
    return result;
  }
  double now = 0;
  for (const std::size_t j : holders_)
    now += objective_.WorthOf(board_, j, board_.holder(j).shares);
  needed_ = now + kBoundRounding * std::max(1.0, std::abs(now));
  BoundRest();
  std::vector<double> best(states_, kOutOfReach);
  std::vector<double> next(states_);
  best[0] = 0;
  result.complete = bound_[0][static_cast<std::size_t>(total_room_)] <= needed_;
  if (!result.complete) {
    chosen_.resize(states_ * holders_.size());
    result.complete = true;
    for (std::size_t i = 0; i < holders_.size() && result.complete; ++i) {
      std::fill(next.begin(), next.end(), kOutOfReach);
      result.complete = Extend(i, best, next);
      best.swap(next);
    }
    const auto at = std::max_element(best.begin(), best.end());
    if (result.complete && *at > needed_) {
      Take(exchange, static_cast<std::size_t>(at - best.begin()));
      result.changed = true;
    }
  }
  result.steps = steps_;
  return result;
}

}  // namespace

ReallocationResult Reallocate(Board& board, Exchange& exchange, Objective& objective,
                              const std::vector<HolderLimits>& limits, std::span<const int> nodes,
                              double max_steps) {
  if (nodes.empty() || nodes.size() > kMostReallocated) return {};
  std::vector<int> ascending(nodes.begin(), nodes.end());
  std::sort(ascending.begin(), ascending.end());
  return Reallocation(board, objective, limits, ascending).Solve(exchange, max_steps);
}

}  // namespace espalier
