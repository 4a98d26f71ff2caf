// States that take their time to be handed over.

#include <algorithm>
#include <utility>

#include "tests/simulation/simulated_pool.h"

namespace espalier {

namespace {

constexpr std::int64_t kBytesASecond = 125'000'000;

}  // namespace

// Whether the state is where it is to be. Some take their time.
bool SimulatedPool::StateHasMoved(TrialId trial, std::int64_t generation, std::size_t members) {
  const auto known = transfers_.find({trial, generation});
  if (known != transfers_.end()) return known->second.moved >= known->second.seconds;
  if (faults_.large_state == 0 || members < 2 || random_.Uniform() >= faults_.large_state) {
    return true;
  }
  Transfer transfer{.seconds = 35 + static_cast<int>(random_.Below(60))};
  const bool stalls = random_.Uniform() < faults_.stalled_state;
  transfer.stops_after = stalls ? static_cast<int>(random_.Below(30)) : transfer.seconds;
  transfers_.emplace(std::pair(trial, generation), transfer);
  agenda_.In(1, [this, trial, generation] { MoveState(trial, generation); });
  return false;
}

// Another second's worth, of which all members tell who are still at it.
void SimulatedPool::MoveState(TrialId trial, std::int64_t generation) {
  Transfer& transfer = transfers_.at({trial, generation});
  if (transfer.moved >= transfer.stops_after) return;
  ++transfer.moved;
  std::size_t members = 0;
  std::size_t at_it = 0;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    for (auto& [id, process] : nodes_[index].processes) {
      if (process.exited || process.hung || process.trial != trial || !process.regroup) continue;
      if (process.regroup->generation != generation) continue;
      members = process.regroup->members.size();
      ++at_it;
      Emit(index, id,
           FromReplica{id, ReplicaForming{generation, GroupPhase::kHandingOver,
                                          transfer.moved * kBytesASecond,
                                          transfer.seconds * kBytesASecond}});
    }
  }
  if (at_it == 0 || at_it < members) {
    transfer.stops_after = 0;  // somebody was lost, or told otherwise
    return;
  }
  if (transfer.moved < transfer.seconds) {
    return agenda_.In(1, [this, trial, generation] { MoveState(trial, generation); });
  }
  ++handovers_.done;
  TryForm(trial, generation);
}

// Before a process is told of another group than the one that it is on its way to.
void SimulatedPool::CountHandover(const Process& process) {
  if (!process.regroup || process.regroup->members.empty()) return;
  const Membership& membership = *process.regroup;
  const auto found = transfers_.find({process.trial, membership.generation});
  if (found == transfers_.end() || membership.members.front().replica != process.id) return;
  const Transfer& transfer = found->second;
  if (transfer.moved >= transfer.seconds) return;
  const bool all_live = std::all_of(membership.members.begin(), membership.members.end(),
                                    [this](const Member& member) {
                                      const Process* other = FindProcess(member.replica);
                                      return other != nullptr && !other->hung && !other->stopping;
                                    });
  if (!all_live) return;
  ++(transfer.moved >= transfer.stops_after ? handovers_.stalled : handovers_.cut_off);
}

}  // namespace espalier
