#include "allocator/pool_size/goodput_by_size.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace espalier {

int OtherSlots(const PoolSizeRequest& request) {
  // The engine's own are listed last by whoever asks: only their number matters here.
  int total = 0;
  for (const NodeCapacity& node : request.pool.nodes) {
    if (!node.draining) total += std::max(0, node.slots);
  }
  const bool one_template = request.order.steps.empty();
  return std::max(
      0, total - (one_template ? request.nodes * request.node.slots : request.order.slots_there));
}

double GoodputOn(const PoolSizeRequest& request, const std::map<int, int>& nodes_by_slots,
                 GoodputMemo& memo) {
  const auto [it, fresh] = memo.known.try_emplace(nodes_by_slots, 0.0);
  if (!fresh) return it->second;
  Pool pool = request.pool;
  pool.nodes.clear();
  const int others = OtherSlots(request);
  std::int64_t id = 0;
  if (others > 0) pool.nodes.push_back({.id = NodeId(++id), .slots = others});
  for (const auto& [slots, nodes] : nodes_by_slots) {
    for (int n = 0; n < nodes; ++n) pool.nodes.push_back({.id = NodeId(++id), .slots = slots});
  }
  double sum = 0;
  for (const auto& [study, part] : DivideAmongStudies(pool, memo.speedups, request.demand, 1)) {
    sum += part.goodput;
  }
  return it->second = sum;
}

template <typename See>
void GoodputBySize::ForFirst(int nodes, See see) const {
  const std::vector<NodeOrder::Step>& steps = request_->order.steps;
  const auto most = static_cast<std::size_t>(std::max(0, nodes));
  for (std::size_t n = 0; n < std::min(most, steps.size()); ++n) see(steps[n]);
}

double GoodputBySize::At(int nodes) {
  std::map<int, int> by_slots;
  if (request_->order.steps.empty()) {
    if (nodes > 0) by_slots[request_->node.slots] = nodes;
  } else {
    ForFirst(nodes, [&](const NodeOrder::Step& step) { ++by_slots[step.slots]; });
  }
  return GoodputOn(*request_, by_slots, *memo_);
}

int GoodputBySize::Slots(int nodes) const {
  int slots = OtherSlots(*request_);
  if (request_->order.steps.empty()) return slots + nodes * request_->node.slots;
  ForFirst(nodes, [&slots](const NodeOrder::Step& step) { slots += step.slots; });
  return slots;
}

double GoodputBySize::Cost(int nodes) const {
  double price = 0;
  ForFirst(nodes, [&price](const NodeOrder::Step& step) { price += step.price_per_hour; });
  return request_->order.steps.empty() ? Slots(nodes) : price;
}

double GoodputBySize::Start_s(int nodes, int more) const {
  if (request_->order.steps.empty()) return request_->node.start_s;
  double longest_s = 0;
  int n = 0;
  ForFirst(more, [&](const NodeOrder::Step& step) {
    if (n++ >= nodes) longest_s = std::max(longest_s, step.start_s);
  });
  return longest_s;
}

double TimeLeft(const PoolSizeRequest& request) {
  double most_s = 0;
  for (const auto& [id, demand] : request.demand) {
    if (demand.configurations > 0) return std::numeric_limits<double>::infinity();
  }
  for (const Job& job : request.pool.jobs) {
    if (!(job.work_left_s > 0)) return std::numeric_limits<double>::infinity();
    most_s = std::max(most_s, job.work_left_s);
  }
  return most_s;
}

bool Idle(const PoolSizeRequest& request) {
  const bool waiting = std::any_of(request.demand.begin(), request.demand.end(),
                                   [](const auto& d) { return d.second.configurations > 0; });
  return request.pool.jobs.empty() && !waiting;
}

std::string Nodes(int n) { return n == 1 ? "1 node" : absl::StrCat(n, " nodes"); }

PoolSizeDecision IdleDecision(const PoolSizeRequest& request) {
  const int least = request.node.min_nodes;
  return {least,
          absl::StrCat(Nodes(least), ": no trials and nothing to try, the least there may be")};
}

int LeastThatRuns(const PoolSizeRequest& request, GoodputBySize& goodput) {
  for (int n = request.node.min_nodes; n <= request.node.max_nodes; ++n) {
    if (goodput.At(n) > 0) return n;
  }
  return request.node.min_nodes;
}

}  // namespace espalier
