#include "trial_runner/agent/spare_pool.h"

#include <google/protobuf/util/message_differencer.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial_runner/agent/processes/out_of_memory.h"

namespace espalier {
namespace {

// Same program, same trial: only what a replica is told on adoption may differ.
bool SameProgram(v1::StartReplica a, v1::StartReplica b) {
  for (v1::StartReplica* start : {&a, &b}) {
    start->clear_replica_id();
    start->clear_slot();
    start->clear_more_slots();
    start->clear_checkpoint();
    start->clear_from();
    start->clear_joins();
    start->clear_token();  // the spare has one of the same trial
  }
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

}  // namespace

std::int64_t OwnMemoryBytes(int pid) {
  std::ifstream rollup(absl::StrCat("/proc/", pid, "/smaps_rollup"));
  constexpr std::int64_t kKilobyte = 1024;
  for (std::string line; std::getline(rollup, line);) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t size = 0;
    if (fields >> name >> size && name == "Private_Dirty:") return size * kKilobyte;
  }
  return 0;
}

void SparePool::Add(std::unique_ptr<ReplicaProcess> spare, Clock::time_point now,
                    std::int64_t device_bytes) {
  KillFirst(spare->identity().pid(), true);
  spares_.push_back({.process = std::move(spare),
                     .since = now,
                     .device_bytes = std::max<std::int64_t>(device_bytes, 0)});
  std::int64_t used = 0;
  for (Spare& s : spares_) {
    if (s.ending) continue;
    s.memory_bytes = OwnMemoryBytes(s.process->identity().pid()) + s.device_bytes;
    used += s.memory_bytes;
  }
  for (Spare& s : spares_) {
    if (used <= memory_bytes_ && memory_bytes_ > 0) return;
    if (s.ending) continue;
    used -= s.memory_bytes;
    End(s);
  }
}

void SparePool::AwaitEnd(std::unique_ptr<ReplicaProcess> killed, Clock::time_point now) {
  spares_.push_back({.process = std::move(killed), .since = now, .ending = true});
}

std::unique_ptr<ReplicaProcess> SparePool::Take(
    const v1::StartReplica& start, const std::function<bool(const ReplicaProcess&)>& suits) {
  for (auto spare = spares_.rbegin(); spare != spares_.rend(); ++spare) {
    const bool usable = !spare->ending && spare->process->control_fd() >= 0;
    if (!usable || !SameProgram(spare->process->start(), start) || !suits(*spare->process)) {
      continue;
    }
    std::unique_ptr<ReplicaProcess> taken = std::move(spare->process);
    spares_.erase(std::next(spare).base());
    KillFirst(taken->identity().pid(), false);
    return taken;
  }
  return nullptr;
}

void SparePool::End(Spare& spare) {
  if (spare.ending) return;
  spare.ending = true;
  spare.process->Terminate(0, Clock::now());
}

void SparePool::EndIf(const std::function<bool(const ReplicaProcess&)>& condition) {
  for (Spare& spare : spares_) {
    if (condition(*spare.process)) End(spare);
  }
}

void SparePool::ForEach(const std::function<void(const ReplicaProcess&)>& call) const {
  for (const Spare& spare : spares_) call(*spare.process);
}

void SparePool::EndTrial(std::int64_t trial_id) {
  EndIf([&](const ReplicaProcess& spare) { return spare.identity().trial_id() == trial_id; });
}

void SparePool::Watch(std::vector<pollfd>& fds) const {
  for (const Spare& spare : spares_) {
    fds.push_back({spare.process->control_fd(), POLLIN, 0});
    fds.push_back({spare.process->pidfd(), POLLIN, 0});
  }
}

void SparePool::Hear(std::span<const pollfd> fds) {
  for (std::size_t i = 0; i < spares_.size(); ++i) {
    Spare& spare = spares_[i];
    // It has nothing to say but that it runs.
    if (fds[2 * i].revents != 0 && !spare.process->Read().empty() && !spare.ending) {
      spdlog::warn("the spare replica with process {} speaks although it has parked: it is ended",
                   spare.process->identity().pid());
      End(spare);
    }
    if (spare.process->control_fd() < 0) End(spare);
    if (fds[2 * i + 1].revents != 0) {
      spare.process->Reap();
      spare.process.reset();
    }
  }
  std::erase_if(spares_, [](const Spare& spare) { return spare.process == nullptr; });
}

void SparePool::HandOver(v1::AgentHandover& handover) const {
  for (const Spare& spare : spares_) {
    v1::HandedReplica& handed = *handover.add_spares();
    handed = spare.process->HandOver();
    handed.set_parked_at_ns(spare.since.time_since_epoch().count());
    handed.set_ending(spare.ending);
    handed.set_device_memory_bytes(spare.device_bytes);
  }
}

void SparePool::TakeOver(const v1::AgentHandover& handover) {
  for (const v1::HandedReplica& handed : handover.spares()) {
    auto process = std::make_unique<ReplicaProcess>(handed);
    const std::int64_t memory_bytes = OwnMemoryBytes(process->identity().pid());
    const std::int64_t device_bytes = handed.device_memory_bytes();
    spares_.push_back({.process = std::move(process),
                       .since = Clock::time_point(std::chrono::nanoseconds(handed.parked_at_ns())),
                       .memory_bytes = memory_bytes + device_bytes,
                       .device_bytes = device_bytes,
                       .ending = handed.ending()});
  }
}

void SparePool::ListenedInVain(Clock::duration time) {
  for (Spare& spare : spares_) spare.process->ListenedInVain(time);
}

void SparePool::KeepTime(Clock::time_point now, Clock::duration lease) {
  for (Spare& spare : spares_) {
    spare.process->KillIfSilent(lease);
    if (now - spare.since >= kMaxSpareAge) End(spare);
  }
}

SparePool::Clock::time_point SparePool::NextTime(Clock::time_point now,
                                                 Clock::duration lease) const {
  Clock::time_point next = Clock::time_point::max();
  for (const Spare& spare : spares_) {
    if (spare.ending) continue;
    next = std::min(next, spare.since + kMaxSpareAge);
    if (const auto left = spare.process->LeaseLeft(lease)) {
      next = std::min(next, now + std::min(*left, lease / kTurnsPerLease));
    }
  }
  return next;
}

}  // namespace espalier
