#include "tests/trial_runner/collectives/in_process_host.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"

namespace espalier {
namespace {

constexpr std::chrono::seconds kPatience{60};  // for what must come, however busy the machine is

std::mutex stop_mutex;
std::condition_variable stops;
bool released = false;
thread_local int calls_left = 0;
thread_local std::atomic<bool>* stopped_here = nullptr;

std::size_t SizeOf(const CollectiveBuffer& buffer) {
  const bool byte = buffer.type == CollectiveBuffer::Type::kByte;
  const std::size_t wide = buffer.type == CollectiveBuffer::Type::kFloat ? 4 : 8;
  return static_cast<std::size_t>(buffer.count) * (byte ? 1 : wide);
}

MeetingPlace::Bytes BytesOf(const CollectiveBuffer& buffer) {
  const auto* start = static_cast<const std::uint8_t*>(buffer.start);
  return {start, start + SizeOf(buffer)};
}

template <typename Number>
void Add(const MeetingPlace::Bytes& bytes, void* to) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    Number own{};
    Number other{};
    auto* const place = static_cast<std::uint8_t*>(to) + at;
    std::memcpy(&own, place, sizeof own);
    std::memcpy(&other, bytes.data() + at, sizeof other);
    own = static_cast<Number>(own + other);
    std::memcpy(place, &own, sizeof own);
  }
}

void AddTo(const CollectiveBuffer& buffer, const MeetingPlace::Bytes& bytes) {
  switch (buffer.type) {
    case CollectiveBuffer::Type::kFloat:
      return Add<float>(bytes, buffer.start);
    case CollectiveBuffer::Type::kDouble:
      return Add<double>(bytes, buffer.start);
    case CollectiveBuffer::Type::kInt64:
      return Add<std::int64_t>(bytes, buffer.start);
    case CollectiveBuffer::Type::kByte:
      return Add<std::uint8_t>(bytes, buffer.start);
  }
}

}  // namespace

// ---- stops --------------------------------------------------------------------------------------

Stops::Stops() { released = false; }
Stops::~Stops() { Release(); }

void Stops::StopAt(int call, std::atomic<bool>* stopped) {
  calls_left = call;
  stopped_here = stopped;
}

void Stops::AtCall() {
  if (calls_left == 0 || --calls_left > 0) return;
  std::unique_lock lock(stop_mutex);
  *stopped_here = true;
  stops.notify_all();
  stops.wait(lock, [] { return released; });
}

void Stops::Release() {
  Change([] { released = true; });
}

void Stops::Change(const std::function<void()>& change) {
  const std::lock_guard lock(stop_mutex);
  change();
  stops.notify_all();
}

bool Stops::Await(const std::function<bool()>& condition) {
  std::unique_lock lock(stop_mutex);
  return stops.wait_for(lock, kPatience, condition);
}

// ---- the meeting place --------------------------------------------------------------------------

void MeetingPlace::Tell(const Key& key, int rank, const Bytes& bytes) {
  const std::lock_guard lock(mutex_);
  told_[key][rank] = bytes;
}

std::map<int, MeetingPlace::Bytes> MeetingPlace::Told(const Key& key, int count) {
  const std::lock_guard lock(mutex_);
  const auto& told = told_[key];
  if (static_cast<int>(told.size()) < count) return {};
  return told;
}

// ---- the collectives ----------------------------------------------------------------------------

absl::Status InProcessHost::Form(const GroupPlan& plan) {
  plan_ = plan;
  counts_.clear();
  begun_.clear();
  lost_ = false;
  return absl::OkStatus();
}

void InProcessHost::Meet(const std::string& what, const CollectiveBuffer& buffer,
                         std::function<void(const std::map<int, MeetingPlace::Bytes>&)> make) {
  Stops::AtCall();
  ESPALIER_CHECK(!lost_, "called on a group that is lost");
  const MeetingPlace::Key key = Next(what);
  place_.Tell(key, plan_.rank, BytesOf(buffer));
  begun_.emplace_back([this, key, owner = buffer.owner, make = std::move(make)] {
    const auto told = place_.Told(key, plan_.size);
    if (told.empty()) return false;
    make(told);
    return true;
  });
}

void InProcessHost::StartAllReduceSum(const CollectiveBuffer& buffer) {
  Meet("sum", buffer, [buffer](const auto& told) {
    // In the order of the ranks on each, so that all have the same sum.
    std::memset(buffer.start, 0, SizeOf(buffer));
    for (const auto& [rank, bytes] : told) AddTo(buffer, bytes);
  });
}

void InProcessHost::StartBroadcast(const CollectiveBuffer& buffer, int root) {
  Meet("broadcast", buffer, [buffer, root](const auto& told) {
    std::memcpy(buffer.start, told.at(root).data(), SizeOf(buffer));
  });
}

void InProcessHost::StartSend(const CollectiveBuffer& buffer, int to) {
  Stops::AtCall();
  place_.Tell(Next(absl::StrCat("send ", plan_.rank, " to ", to)), plan_.rank, BytesOf(buffer));
}

void InProcessHost::StartReceive(const CollectiveBuffer& buffer, int from) {
  Stops::AtCall();
  const MeetingPlace::Key key = Next(absl::StrCat("send ", from, " to ", plan_.rank));
  begun_.emplace_back([this, key, buffer] {
    const auto told = place_.Told(key, 1);
    if (told.empty()) return false;
    std::memcpy(buffer.start, told.begin()->second.data(), SizeOf(buffer));
    return true;
  });
}

absl::Status InProcessHost::WaitAll() {
  const std::vector<Finish> begun = std::exchange(begun_, {});
  for (const Finish& finish : begun) {
    const absl::Status status = Wait(kPatience.count(), finish);
    lost_ = !status.ok();
    if (lost_) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<std::int64_t>>> InProcessHost::AllGather(
    const std::vector<std::int64_t>& values) {
  std::vector<std::vector<std::int64_t>> table;
  auto own = std::make_shared<std::vector<std::int64_t>>(values);
  Meet("gather", CollectiveBuffer::Of(own), [&table](const auto& told) {
    for (const auto& [rank, bytes] : told) {
      std::vector<std::int64_t>& row = table.emplace_back(bytes.size() / sizeof(std::int64_t));
      std::memcpy(row.data(), bytes.data(), bytes.size());
    }
  });
  ESPALIER_RETURN_IF_ERROR(WaitAll());
  return table;
}

absl::Status InProcessHost::Wait(double limit_s, const std::function<bool()>& done) {
  return bell_.WaitFor({.generation = plan_.generation,
                        .limit_s = limit_s,
                        .done = done,
                        .poll_every = std::chrono::microseconds(50)});
}

}  // namespace espalier
