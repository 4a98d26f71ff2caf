#include "tuner/server/http/live_trials.h"

#include <set>

namespace espalier {

LiveTrials LookAtTrials(const View& view) {
  LiveTrials live{.at = view.now, .trials = {}, .pool = {}};
  std::set<TrialId> holders;
  for (const NodeView& node : view.core.Nodes()) {
    for (const std::int64_t part :
         {node.id.value, std::int64_t{node.slots}, std::int64_t{node.connected},
          std::int64_t{node.draining}, static_cast<std::int64_t>(node.unusable.size()),
          static_cast<std::int64_t>(node.replicas.size())}) {
      live.pool.push_back(part);
    }
    for (const ReplicaView& replica : node.replicas) holders.insert(replica.trial);
  }
  live.pool.push_back(static_cast<std::int64_t>(view.engine_troubles.size()));
  live.pool.push_back(static_cast<std::int64_t>(view.disk_troubles.size()));
  const TunerState& state = view.core.state();
  for (const TrialId id : holders) {
    const auto trial = state.trials.find(id);
    if (trial == state.trials.end()) continue;
    const TrialActivity activity = view.core.Activity(id);
    LiveRow row{.trial = {trial->second.id, trial->second.study, trial->second.number},
                .slots = activity.slots,
                .promise = activity.promise};
    for (std::size_t i = 0; i < kLiveFigures.size(); ++i) {
      row.figures[i] = activity.figures[FindFigure(kLiveFigures[i])->figure];
    }
    live.trials.push_back(row);
  }
  return live;
}

}  // namespace espalier
