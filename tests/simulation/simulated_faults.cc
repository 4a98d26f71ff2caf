// What goes wrong in the simulated pool between two of its events, and how often it did.

#include <iterator>
#include <utility>

#include "tests/simulation/simulated_pool.h"

namespace espalier {

void SimulatedPool::InjectHangs(std::size_t index) {
  for (auto& [id, process] : nodes_[index].processes) {
    if (process.hung || process.exited || !process.ready) continue;
    // Only its group can miss a replica of which the main thread alone has stopped.
    const bool missed = process.regroup && process.generation == process.regroup->generation &&
                        process.regroup->members.size() > 1 && !WaitsInVain(process);
    if (missed && random_.Uniform() < faults_.hang) {
      process.hung = true;
      ++met_["main thread hung"];
    }
    if (random_.Uniform() < faults_.freeze) {
      process.hung = true;
      ++met_["replica frozen"];
      agenda_.In(3, [this, index, frozen = id] {
        if (!nodes_[index].processes.contains(frozen)) return;
        Exit(index, frozen, -1, 9, "hung: not heard of for 3 s");
      });
    }
  }
}

void SimulatedPool::CountKill(const Process& process) {
  if (process.exited) return;
  ++met_["replica killed"];
  if (!process.regroup || process.generation != process.regroup->generation) return;
  const std::vector<Member>& members = process.regroup->members;
  if (members.size() < 2 || !process.regroup->RankOf(process.id)) return;
  ++met_[members.front().replica == process.id ? "rank 0 of several killed"
                                               : "another of several killed"];
}

void SimulatedPool::InjectFaults() {
  const auto pick = [this](std::size_t n) { return static_cast<std::size_t>(random_.Below(n)); };
  const std::size_t index = pick(nodes_.size());
  SimNode& node = nodes_[index];
  if (random_.Uniform() < faults_.kill_replica && !node.processes.empty()) {
    const auto at =
        std::next(node.processes.begin(), static_cast<std::ptrdiff_t>(pick(node.processes.size())));
    CountKill(at->second);
    Exit(index, at->first, -1, 9);
  }
  InjectHangs(index);
  if (faults_.client > 0 && random_.Uniform() < faults_.client) ActAsClient();
  if (faults_.clone > 0 && random_.Uniform() < faults_.clone) CloneATrial();
  if (random_.Uniform() < faults_.break_stream && node.connected) {
    const NodeId id = node.id;
    ++met_["stream broken"];
    BreakStream(index);
    StepCore(AgentGone{id});
  }
  if (random_.Uniform() < faults_.lose_node && node.up) {
    LoseNode(index, random_.Uniform() < faults_.lose_disk, random_.Uniform(0.5, 12));
  }
  if (faults_.damage > 0 && random_.Uniform() < faults_.damage) {
    ++met_["checkpoints damaged"];
    Damage(index);
  }
  if (random_.Uniform() < faults_.stop_study) {
    const auto& studies = state().studies;
    const std::string name =
        std::next(studies.begin(), static_cast<std::ptrdiff_t>(pick(studies.size())))
            ->second.spec.name;
    if (StepCore(StopStudy{name}).status.ok()) ++met_["study stopped"];
    agenda_.In(random_.Uniform(0.1, 5), [this, name] { Resume(name); });
  }
}

}  // namespace espalier
