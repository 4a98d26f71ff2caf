#include "trial_runner/collectives/cuda/device_collectives.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace espalier {
namespace {

using Kind = StagedOperation::Kind;

// Device work rings no bell: how often it is looked at.
constexpr std::chrono::microseconds kLook{20};

}  // namespace

DeviceCollectives::DeviceCollectives(std::unique_ptr<Collectives> host, CollectivesOptions options,
                                     std::optional<Device> device)
    : host_(std::move(host)),
      options_(std::move(options)),
      staging_(device ? std::move(device->staging) : nullptr) {
  if (device) group_.emplace(*host_, std::move(device->group));
}

absl::Status DeviceCollectives::Form(const GroupPlan& plan) {
  GiveUp();
  begin_error_ = absl::OkStatus();
  lost_ = false;
  plan_ = plan;
  ESPALIER_RETURN_IF_ERROR(host_->Form(plan));
  if (!group_) return absl::OkStatus();
  const absl::Status formed = staging_->OnDevice([&] { return group_->Form(plan); });
  if (!formed.ok()) Lose();
  return formed;
}

void DeviceCollectives::StartAllReduceSum(const CollectiveBuffer& buffer) {
  Start({.kind = Kind::kAllReduceSum, .buffer = buffer});
}

void DeviceCollectives::StartBroadcast(const CollectiveBuffer& buffer, int root) {
  const bool sends = root == plan_.rank;
  Start(
      {.kind = Kind::kBroadcast, .buffer = buffer, .peer = root, .reads = sends, .writes = !sends});
}

void DeviceCollectives::StartSend(const CollectiveBuffer& buffer, int to) {
  Start({.kind = Kind::kSend, .buffer = buffer, .peer = to, .reads = true, .writes = false});
}

void DeviceCollectives::StartReceive(const CollectiveBuffer& buffer, int from) {
  Start({.kind = Kind::kReceive, .buffer = buffer, .peer = from, .reads = false});
}

absl::Status DeviceCollectives::WaitAllAnd(const std::function<void()>& follow) {
  absl::Status status = std::exchange(begin_error_, absl::OkStatus());
  // What the caller's own work throws is the caller's: no other member need be to blame.
  std::exception_ptr thrown;
  const auto guarded = [&] {
    try {
      follow();
    } catch (...) {
      thrown = std::current_exception();
    }
  };
  if (status.ok() && group_) {
    const std::function<void()> work = follow ? guarded : std::function<void()>();
    status = staging_->OnDevice([&] { return WaitForAll(work); });
  } else if (status.ok()) {
    status = follow ? host_->WaitAllAnd(follow) : host_->WaitAll();
  }
  if (!status.ok()) Lose();
  if (thrown) std::rethrow_exception(thrown);
  return status;
}

absl::StatusOr<std::vector<std::vector<std::int64_t>>> DeviceCollectives::AllGather(
    const std::vector<std::int64_t>& values) {
  if (lost_) {
    ESPALIER_CHECK(bell_.Abandoned(plan_.generation), "collective called on a group that is lost");
    return Bell::AbandonedStatus(plan_.generation);
  }
  ESPALIER_RETURN_IF_ERROR(WaitAll());  // in the order of the calls
  return host_->AllGather(values);
}

void DeviceCollectives::Abandon(std::int64_t generation, double grace_s) {
  bell_.Abandon(generation, grace_s);
  host_->Abandon(generation, grace_s);
}

void DeviceCollectives::SetLeastGrace(double grace_s) {
  bell_.SetLeastGrace(grace_s);
  host_->SetLeastGrace(grace_s);
}

double DeviceCollectives::Waiting_s() const {
  return std::max(bell_.Waiting_s(), host_->Waiting_s());
}

DeviceStaging::Patience DeviceCollectives::PatienceUpTo(double limit_s) {
  return [this, limit_s](const std::function<bool()>& done) {
    return bell_.WaitFor(
        {.generation = plan_.generation, .limit_s = limit_s, .done = done, .poll_every = kLook});
  };
}

void DeviceCollectives::Start(const StagedOperation& operation) {
  if (!begin_error_.ok()) return;
  const CollectiveBuffer& buffer = operation.buffer;
  const bool on_host = buffer.device == CollectiveBuffer::kHost;
  ESPALIER_CHECK(on_host || buffer.device == options_.device,
                 "buffer on another GPU than the one the collectives are for");
  if (!group_) {
    StartOnHost(*host_, operation);
    return;
  }
  if (bell_.Abandoned(plan_.generation)) {
    begin_error_ = Bell::AbandonedStatus(plan_.generation);
  } else if (!on_host && plan_.size == 1) {
    // There is nobody to hear from.
  } else {
    begin_error_ = staging_->OnDevice([&] { return StartOnDevice(operation); });
  }
}

absl::Status DeviceCollectives::StartOnDevice(const StagedOperation& operation) {
  ESPALIER_CHECK(!lost_, "collective called on a group that is lost");
  const CollectiveBuffer& buffer = operation.buffer;
  NcclCommunicator* const communicator = group_->communicator();
  if (communicator == nullptr || buffer.device == CollectiveBuffer::kHost) {
    if (operation.kind == Kind::kAllReduceSum && buffer.device != CollectiveBuffer::kHost) Speak();
    staging_->Start(operation);
    return absl::OkStatus();
  }
  const auto patience = PatienceUpTo(options_.collective_limit_s);
  switch (operation.kind) {
    case Kind::kAllReduceSum:
      return communicator->AllReduceSum(buffer, patience);
    case Kind::kBroadcast:
      return communicator->Broadcast(buffer, operation.peer, patience);
    case Kind::kSend:
    case Kind::kReceive:
      // One after the other on the stream, two that send to each other would wait for ever.
      transfers_.push_back({buffer, operation.peer, operation.kind == Kind::kSend});
      return absl::OkStatus();
  }
  ESPALIER_CHECK(false, "unknown operation");
}

void DeviceCollectives::Speak() {
  if (!group_->forming() || vote_) return;
  vote_ = std::make_shared<std::vector<std::int64_t>>(group_->Vote());
  staging_->Start({.kind = Kind::kAllReduceSum, .buffer = CollectiveBuffer::Of(vote_)});
}

absl::Status DeviceCollectives::WaitForAll(const std::function<void()>& follow) {
  const auto patience = PatienceUpTo(options_.collective_limit_s);
  NcclCommunicator* const communicator = group_->communicator();
  if (communicator != nullptr && !transfers_.empty()) {
    ESPALIER_RETURN_IF_ERROR(communicator->Exchange(transfers_, patience));
    transfers_.clear();
  }
  ESPALIER_RETURN_IF_ERROR(staging_->WaitAll(patience));
  if (vote_) group_->CountVotes(*std::exchange(vote_, nullptr));
  if (communicator != nullptr) return communicator->WaitAll(patience, follow);
  if (follow) follow();
  return absl::OkStatus();
}

void DeviceCollectives::GiveUp() {
  if (group_) group_->GiveUp();
  if (staging_) staging_->Clear();
  transfers_.clear();
  vote_.reset();
}

void DeviceCollectives::Lose() {
  lost_ = true;
  GiveUp();
  if (!group_) return;
  // A group of one has no connections. It may answer that this one was to be given up: so it is.
  static_cast<void>(host_->Form(
      {.generation = plan_.generation, .rank = 0, .size = 1, .rendezvous = host_->Address()}));
}

}  // namespace espalier
