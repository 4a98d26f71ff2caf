#include "trial_runner/agent/spare_pool.h"

#include <google/protobuf/util/message_differencer.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
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

// The sum of these fields of one of the kernel's files about a process.
std::int64_t BytesIn(int pid, const char* file, const std::set<std::string>& wanted) {
  std::ifstream about(absl::StrCat("/proc/", pid, "/", file));
  constexpr std::int64_t kKilobyte = 1024;
  std::int64_t bytes = 0;
  for (std::string line; std::getline(about, line);) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t size = 0;
    if (fields >> name >> size && wanted.contains(name)) bytes += size * kKilobyte;
  }
  return bytes;
}

// At least OwnMemoryBytes, and known at once: what it shares with others is in it.
std::int64_t MostOwnMemoryBytes(int pid) {
  // The kernel adds up in batches, of so many pages on each processor, what these two count.
  const std::int64_t processors = std::max(1L, sysconf(_SC_NPROCESSORS_CONF));
  const std::int64_t not_added = 2 * processors * std::max<std::int64_t>(32, 2 * processors);
  return not_added * sysconf(_SC_PAGESIZE) + BytesIn(pid, "status", {"RssAnon:", "RssShmem:"});
}

// One that waits writes nothing, but what it shared is its own once those that it shared it with
// have ended.
constexpr std::chrono::seconds kCountHolds{10};

}  // namespace

std::int64_t OwnMemoryBytes(int pid) { return BytesIn(pid, "smaps_rollup", {"Private_Dirty:"}); }

void SparePool::Add(std::unique_ptr<ReplicaProcess> spare, Clock::time_point now,
                    std::int64_t device_bytes) {
  const int pid = spare->identity().pid();
  KillFirst(pid, true);
  const std::int64_t on_device = std::max<std::int64_t>(device_bytes, 0);
  spares_.push_back({.process = std::move(spare),
                     .since = now,
                     .memory_bytes = MostOwnMemoryBytes(pid) + on_device,
                     .device_bytes = on_device});
  for (Spare& s : spares_) ForgetOldCount(s, now);
  for (Spare& s : spares_) {
    if (Fit()) return;
    if (!s.ending && !s.counted) Count(s, now);
  }
  for (Spare& s : spares_) {
    if (Fit()) return;
    End(s);
  }
}

bool SparePool::Fit() const {
  std::int64_t used = 0;
  for (const Spare& spare : spares_) used += spare.ending ? 0 : spare.memory_bytes;
  return memory_bytes_ > 0 && used <= memory_bytes_;
}

void SparePool::Count(Spare& spare, Clock::time_point now) {
  spare.memory_bytes = OwnMemoryBytes(spare.process->identity().pid()) + spare.device_bytes;
  spare.counted = now;
}

void SparePool::ForgetOldCount(Spare& spare, Clock::time_point now) {
  if (spare.ending || !spare.counted || now - *spare.counted < kCountHolds) return;
  spare.memory_bytes = MostOwnMemoryBytes(spare.process->identity().pid()) + spare.device_bytes;
  spare.counted.reset();
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
    const std::int64_t memory_bytes = MostOwnMemoryBytes(process->identity().pid());
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
