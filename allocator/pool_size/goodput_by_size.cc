#include "allocator/pool_size/goodput_by_size.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace espalier {

int GoodputBySize::Slots(int nodes) const {
  // The engine's own are listed last by whoever asks: only their number matters here.
  int total = 0;
  for (const NodeCapacity& node : request_->pool.nodes) {
    if (!node.draining) total += std::max(0, node.slots);
  }
  return std::max(0, total - request_->nodes * request_->node.slots) + nodes * request_->node.slots;
}

double GoodputBySize::At(int nodes) {
  const auto [it, fresh] = known_.try_emplace(nodes, 0.0);
  if (!fresh) return it->second;
  Pool pool = request_->pool;
  pool.nodes.clear();
  const int others = Slots(0);
  std::int64_t id = 0;
  if (others > 0) pool.nodes.push_back({.id = NodeId(++id), .slots = others});
  for (int n = 0; n < nodes; ++n) {
    pool.nodes.push_back({.id = NodeId(++id), .slots = request_->node.slots});
  }
  double sum = 0;
  for (const auto& [study, part] : DivideAmongStudies(pool, speedups_, request_->demand, 1)) {
    sum += part.goodput;
  }
  return it->second = sum;
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
