#include "trial_runner/agent/cut_off_ranks.h"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace espalier {
namespace {

bool OverNodes(const ReplicaProcess& replica) {
  return !replica.start().launch().ranks_of_nodes().empty();
}

}  // namespace

std::optional<CutOffRanks::Clock::time_point> CutOffRanks::EndsAt(const Replicas& running,
                                                                  double lease_s) const {
  const bool any = std::ranges::any_of(running, [this](const auto& entry) {
    return OverNodes(*entry.second) && !ended_.contains(entry.first);
  });
  if (!any || lease_s <= 0) return std::nullopt;
  const std::chrono::duration<double> lease(lease_s);
  return heard_at_ + std::chrono::duration_cast<Clock::duration>(lease);
}

void CutOffRanks::EndWhenDue(Replicas& running, double lease_s, const std::string& node,
                             Clock::time_point now) {
  const std::optional<Clock::time_point> at = EndsAt(running, lease_s);
  if (!at || now < *at) return;
  for (auto& [id, replica] : running) {
    if (!OverNodes(*replica) || !ended_.insert(id).second) continue;
    spdlog::warn(
        "node {} ends its ranks of trial {} of study {}, which has others on other nodes: nothing "
        "was heard of the service for its lease of {} s",
        node, replica->start().trial_number(), replica->start().study(), lease_s);
    replica->Terminate(0, now);
  }
}

}  // namespace espalier
